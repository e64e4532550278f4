package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sort"
	"strings"
)

// chat puts the chunks of OpenAI Chat Completions together. A name in brackets is a quirk of
// servers that a rule is there for; `mockllm list quirks NAME` describes it.
type chat struct {
	text, reasoning, refusal strings.Builder
	id, model, finish        string
	calls                    []*call
	last                     *call // that the last fragment belongs to
	usage                    map[string]any
	errors, opaque           []string
	complete, failed         bool
}

// call is a tool call while its fragments arrive. index is nil if the server sends none.
type call struct {
	position  int
	index     *int
	id, name  string
	arguments string
}

func (c *chat) feed(event string, payload json.RawMessage) {
	if c.failed {
		return
	}
	chunk := object(payload)
	c.id, c.model = first(c.id, text(chunk["id"])), first(c.model, text(chunk["model"]))
	failure := chunk["error"]
	if isEmpty(failure) && (event == "error" || text(chunk["object"]) == "error") {
		failure = payload // [err-event-line]
	}
	for _, item := range list(chunk["choices"]) {
		choice := object(item)
		if index := count(choice["index"]); index == nil || *index == 0 { // n=1 [chat-n-choices]
			c.choice(choice, !isEmpty(failure))
		}
	}
	usage := chunk["usage"]
	if isEmpty(usage) {
		usage = object(chunk["x_groq"])["usage"]
	}
	c.count(object(usage))
	if !isEmpty(failure) {
		c.fail(message(failure))
	}
}

func (c *chat) choice(choice fields, failing bool) {
	// The delta first: the chunk with the finish may have one, and more deltas may follow it
	// [chat-finish-with-last-delta, chat-delta-after-finish].
	delta := object(choice["delta"])
	thoughts, content := parts(delta["content"])
	summary := ""
	for _, item := range list(delta["reasoning_details"]) {
		detail := object(item)
		summary += first(text(detail["text"]), text(detail["summary"]))
		c.keep(detail["signature"])
		c.keep(detail["data"])
	}
	// Several fields repeat each other [chat-reasoning-fields].
	c.reasoning.WriteString(first(thoughts, text(delta["reasoning_content"]), text(delta["reasoning"]), summary))
	c.text.WriteString(content)
	c.refusal.WriteString(text(delta["refusal"]))
	for _, item := range list(delta["tool_calls"]) {
		entry := object(item)
		if entry["custom"] == nil || entry["function"] != nil {
			c.fragment(entry)
		}
	}
	if finish := text(choice["finish_reason"]); finish != "" && !failing {
		c.finish = first(c.finish, finish) // the first one counts [chat-finish-twice]
		c.complete = true
	}
}

// fragment adds a fragment to its call. Null and "" mean absent, in every field.
func (c *chat) fragment(entry fields) {
	function := object(entry["function"])
	index, id, name := count(entry["index"]), text(entry["id"]), text(function["name"])
	found := c.find(index, id, name)
	if found == nil {
		found = &call{position: len(c.calls), index: index}
		if index != nil {
			found.position = *index
		}
		c.calls = append(c.calls, found)
	}
	c.last = found
	found.id = first(found.id, id) // the first id stays [chat-id-new-every-chunk]
	if name != found.name {        // the same name again is a repetition [chat-name-repeated]
		found.name += name // another one is its next fragment [chat-name-split]
	}
	if arguments := function["arguments"]; object(arguments) != nil {
		found.arguments += compact(arguments) // [chat-args-object]
	} else {
		found.arguments += text(arguments)
	}
	c.keep(object(object(entry["extra_content"])["google"])["thought_signature"])
}

// find gives the call that a fragment continues, nil if it begins a new one.
func (c *chat) find(index *int, id, name string) *call {
	var last, known *call
	for _, one := range c.calls {
		if index == nil || one.index != nil && *one.index == *index {
			last = one
			if id != "" && one.id == id {
				known = one
			}
		}
	}
	if known != nil || last == nil {
		return known
	}
	if index == nil {
		last = c.last
	}
	isNew := false
	if id != "" && last.id != "" {
		// Servers give all calls the index 0 [chat-index-all-zero], leave it out
		// [chat-index-missing], or invent an id for each chunk [chat-id-new-every-chunk].
		isNew = name != "" || index == nil
	} else if name != "" && last.name != "" {
		isNew = index == nil || name != last.name && last.arguments != ""
	}
	if isNew {
		return nil
	}
	return last
}

// count takes the usage. Each is a total, so the last one counts; null does not erase it.
func (c *chat) count(usage fields) {
	input, output := count(usage["prompt_tokens"]), count(usage["completion_tokens"])
	if input != nil || output != nil {
		c.usage = map[string]any{
			"input":     input,
			"output":    output,
			"reasoning": count(object(usage["completion_tokens_details"])["reasoning_tokens"]),
			"cached":    count(object(usage["prompt_tokens_details"])["cached_tokens"]),
		}
	}
}

// keep keeps what has to be sent back unchanged, such as a signature, once.
func (c *chat) keep(value json.RawMessage) {
	opaque := text(value)
	for _, one := range c.opaque {
		if one == opaque {
			return
		}
	}
	if opaque != "" {
		c.opaque = append(c.opaque, opaque)
	}
}

// fail ends the answer with an error: there is no finish, and what follows is ignored.
func (c *chat) fail(message string) {
	if !c.failed {
		c.failed, c.finish = true, ""
		c.errors = append(c.errors, message)
	}
}

// close ends the input, and returns the outcome. Only an answer that is complete has calls: if it
// was cut, their arguments may be incomplete even if they are JSON.
func (c *chat) close() map[string]any {
	if !c.complete {
		c.fail("the stream was cut: it ended without a finish_reason")
	}
	calls := []map[string]any{}
	if !c.failed {
		sort.SliceStable(c.calls, func(a, b int) bool { return c.calls[a].position < c.calls[b].position })
		for number, one := range c.calls {
			if problem := one.problem(); problem != "" {
				c.errors = append(c.errors, fmt.Sprintf("call %d (%s, %s) %s", number, one.name, one.id, problem))
				continue
			}
			calls = append(calls, map[string]any{
				"id":            first(one.id, c.unusedID(number)),
				"name":          one.name,
				"arguments":     first(one.arguments, "{}"),
				"raw_arguments": one.arguments,
			})
		}
	}
	return map[string]any{
		"text": c.text.String(), "reasoning": c.reasoning.String(), "refusal": c.refusal.String(),
		"role": "assistant", "finish": orNull(c.finish), "tool_calls": calls, "usage": c.usage,
		"errors": append([]string{}, c.errors...), "crash": nil, "opaque": append([]string{}, c.opaque...),
		"model": orNull(c.model), "response_id": orNull(c.id),
	}
}

// problem is why a call must not run, "" if it may. Broken arguments are not repaired: that would
// be to guess what the tool should do.
func (one *call) problem() string {
	switch {
	case one.name == "":
		return "never got a name"
	case one.id == "null" || one.name == "null":
		return "has the text null for an id or a name"
	case one.arguments != "" && object(json.RawMessage(one.arguments)) == nil:
		return "has arguments that are no JSON object: " + excerpt([]byte(one.arguments))
	}
	return ""
}

// unusedID is an id for a call that got none, the same each time.
func (c *chat) unusedID(number int) string {
	used := map[string]bool{}
	for _, one := range c.calls {
		used[one.id] = true
	}
	id := fmt.Sprintf("call_%d", number)
	for used[id] {
		id += "_"
	}
	return id
}

// parts gives the reasoning and the text of a content, which may be a list of parts
// [chat-content-parts].
func parts(content json.RawMessage) (thoughts, texts string) {
	for _, item := range list(content) {
		part := object(item)
		if text(part["type"]) == "thinking" {
			_, inner := parts(part["thinking"])
			thoughts += inner
		} else {
			texts += text(part["text"])
		}
	}
	return thoughts, texts + text(content)
}

// A server may send null, or another type, for every field: these are empty for everything else.

type fields map[string]json.RawMessage

func object(value json.RawMessage) (found fields) {
	if json.Unmarshal(value, &found) != nil {
		return nil
	}
	return found
}

func list(value json.RawMessage) (found []json.RawMessage) {
	if json.Unmarshal(value, &found) != nil {
		return nil
	}
	return found
}

func text(value json.RawMessage) (found string) {
	if json.Unmarshal(value, &found) != nil {
		return ""
	}
	return found
}

// count is a whole number, also one written as 7.0, or nil.
func count(value json.RawMessage) *int {
	var number *float64
	if json.Unmarshal(value, &number) != nil || number == nil || *number != float64(int(*number)) {
		return nil
	}
	whole := int(*number)
	return &whole
}

func compact(value json.RawMessage) string {
	var found bytes.Buffer
	if json.Compact(&found, value) != nil {
		return string(value)
	}
	return found.String()
}

// isEmpty is true for what is absent, null, "" or {}.
func isEmpty(value json.RawMessage) bool {
	switch compact(value) {
	case "", "null", "false", `""`, "{}", "[]":
		return true
	}
	return false
}

func first(values ...string) string {
	for _, value := range values {
		if value != "" {
			return value
		}
	}
	return ""
}

func orNull(value string) any {
	if value == "" {
		return nil
	}
	return value
}

// message gives the message of an error in the shape of any service, with its code or type.
func message(failure json.RawMessage) string {
	for !isEmpty(object(failure)["error"]) {
		failure = object(failure)["error"]
	}
	found := object(failure)
	said := first(text(found["message"]), text(failure), compact(failure))
	for _, key := range []string{"code", "status", "type"} {
		if !isEmpty(found[key]) {
			return fmt.Sprintf("%s (%s)", said, strings.Trim(compact(found[key]), `"`))
		}
	}
	return said
}
