package main

import (
	"fmt"
	"net/http"
	"os"
	"strings"
)

const body = `{"model":"m","messages":[{"role":"user","content":"hello"}]}`

func main() {
	answer, err := http.Post(os.Args[1], "application/json", strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	fmt.Println(answer.StatusCode, answer.Request.URL)
}
