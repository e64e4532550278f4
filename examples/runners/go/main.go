// Runs the client in client.go for `mockllm check`: reads a case a line, answers in a line.
// The protocol is described in docs/runner-protocol.md. Go 1.19 or newer, no dependencies.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
)

type hello struct{ API, Level string }

type job struct {
	ID   int
	Feed []json.RawMessage
}

func main() {
	in, out := json.NewDecoder(bufio.NewReader(os.Stdin)), json.NewEncoder(os.Stdout)
	var first hello
	check(in.Decode(&first))
	if !has(first.API) || (first.Level != "bytes" && first.Level != "payloads") {
		check(fmt.Errorf("no %s at level %s here", first.API, first.Level))
	}
	check(out.Encode(map[string]any{"mockllm": 1, "client": info, "unsupported": []string{}, "intermediate": false}))
	for {
		var next job
		err := in.Decode(&next)
		if err == io.EOF {
			return
		}
		check(err)
		result := run(newClient(), first.Level, next.Feed)
		result["id"] = next.ID
		check(out.Encode(result))
	}
}

func run(c *client, level string, feed []json.RawMessage) (result map[string]any) {
	defer func() {
		if value := recover(); value != nil {
			crash := map[string]any{"message": fmt.Sprint(value), "raised": raised()}
			result = map[string]any{"crash": crash}
		}
	}()
	for _, item := range feed {
		if level == "bytes" {
			var data []byte // encoding/json reads base64 into bytes
			check(json.Unmarshal(item, &data))
			c.feedBytes(data)
		} else {
			var event string
			var payload json.RawMessage
			check(json.Unmarshal(item, &[]any{&event, &payload}))
			c.feedEvent(event, payload)
		}
	}
	return c.close()
}

// The frame that panicked, as `FILE:LINE in FUNCTION`.
func raised() string {
	callers := make([]uintptr, 32)
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)])
	panicked := false
	for frame, more := frames.Next(); more; frame, more = frames.Next() {
		inRuntime := len(frame.Function) > 8 && frame.Function[:8] == "runtime."
		if panicked && !inRuntime {
			return fmt.Sprintf("%s:%d in %s", frame.File, frame.Line, frame.Function)
		}
		panicked = panicked || frame.Function == "runtime.gopanic"
	}
	return ""
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "runner:", err)
		os.Exit(2)
	}
}
