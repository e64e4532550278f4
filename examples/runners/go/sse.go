package main

import (
	"bytes"
	"encoding/json"
)

// events turns the bytes of a stream into events: JSON in server-sent events, or plain JSON.
// https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
type events struct {
	answer  *chat
	partial []byte // the line that has not ended
	started bool
	afterCR bool
	ended   bool
	event   string
	data    [][]byte
	body    [][]byte
}

// feed takes one read, which may end anywhere, also within a character or a line end. Lines are
// split as bytes: in UTF-8 the bytes of CR and LF are in no other character.
func (e *events) feed(read []byte) {
	for len(read) > 0 {
		if e.afterCR && read[0] == '\n' {
			read = read[1:]
		}
		e.afterCR = false
		end := bytes.IndexAny(read, "\r\n")
		if end < 0 {
			e.partial = append(e.partial, read...)
			return
		}
		line := append(e.partial, read[:end]...)
		e.afterCR = read[end] == '\r'
		read = read[end+1:]
		e.partial = nil
		e.line(line)
	}
}

func (e *events) line(line []byte) {
	if !e.started {
		e.started = true
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf")) // the byte order mark
	}
	if e.ended {
		return
	}
	if len(line) == 0 {
		e.dispatch()
		return
	}
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "data":
		e.data = append(e.data, value)
	case "event":
		e.event = string(value)
	case "", "id", "retry":
	default:
		if len(e.body) > 0 || line[0] == '{' || line[0] == '[' {
			e.body = append(e.body, line) // an error or an answer as plain JSON
		}
	}
}

// dispatch passes an event on, which a blank line ends.
func (e *events) dispatch() {
	data, event := bytes.Join(e.data, []byte("\n")), e.event
	e.data, e.event = nil, ""
	if len(data) == 0 {
		return
	}
	if string(bytes.TrimSpace(data)) == "[DONE]" {
		e.ended = true
	} else if json.Valid(data) {
		e.answer.feed(event, data)
	} else {
		// To leave it out would lose a part of the answer silently.
		e.answer.fail("the data of an event are no JSON: " + excerpt(data))
		e.ended = true
	}
}

// close ends the input. The last event may lack its blank line if its JSON is complete.
func (e *events) close() {
	if len(e.partial) > 0 {
		e.line(e.partial)
	}
	if !e.ended {
		e.dispatch()
	}
	if body := bytes.Join(e.body, []byte("\n")); !e.ended && json.Valid(body) {
		payloads := list(body)
		if payloads == nil {
			payloads = []json.RawMessage{body}
		}
		for _, payload := range payloads {
			e.answer.feed("", payload)
		}
	}
}

func excerpt(data []byte) string {
	if len(data) > 200 {
		data = data[:200]
	}
	return string(data)
}
