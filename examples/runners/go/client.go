package main

import "encoding/json"

// The client under test: replace what is here by your client, and keep main.go.
//
// A client gets the answer of a model as it comes from the network, in reads of bytes (feedBytes),
// or as decoded events (feedEvent). close ends the input and returns what the client made of the
// answer, with the keys of the protocol of runners.
type client struct {
	answer *chat
	events *events
}

var info = map[string]string{
	"name":        "example-go",
	"version":     "1.0",
	"language":    "go",
	"entry_point": "client.feedBytes()",
	"adapter":     "main.go",
}

func has(api string) bool { return api == "chat" }

// newClient is a new client for one answer.
func newClient() *client {
	answer := &chat{}
	return &client{answer, &events{answer: answer}}
}

func (c *client) feedBytes(data []byte) { c.events.feed(data) }

func (c *client) feedEvent(event string, payload json.RawMessage) { c.answer.feed(event, payload) }

func (c *client) close() map[string]any {
	c.events.close()
	return c.answer.close()
}
