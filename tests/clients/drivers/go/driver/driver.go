// Package driver is shared by the drivers of the Go libraries: their arguments, the times of sending, and their output.
// tests/clients/libraries.py explains the lines of the output.
package driver

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const valueBytes = 1000

// Spec is the driver's only argument, in JSON.
type Spec struct {
	Bootstrap   string
	User        string
	Topic       string
	Settings    string  // "default", or the name of other settings
	Rate        float64 // records a second
	Outstanding int64   // at most so many records are neither acknowledged nor failed
	Create      bool    // create the topic instead, and print the result of the library's admin
}

var (
	printing    sync.Mutex
	outstanding atomic.Int64
)

// Read takes the spec from the command line, and prints the version of the library with that module path.
func Read(library string) Spec {
	var spec Spec
	if err := json.Unmarshal([]byte(os.Args[1]), &spec); err != nil {
		panic(err)
	}
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if module.Path == library {
			print(map[string]any{"event": "started", "version": strings.TrimPrefix(module.Version, "v")})
		}
	}
	return spec
}

// Tuned says whether the spec asks for the settings with which the library survives a PAUSE.
func (s Spec) Tuned() bool { return s.Settings == "tuned" }

func print(event map[string]any) {
	event["ms"] = time.Now().UnixMilli()
	line, _ := json.Marshal(event)
	printing.Lock()
	defer printing.Unlock()
	fmt.Println(string(line))
}

// Delivered prints that a record was acknowledged, or that the library gave it up with an error.
func Delivered(value []byte, err error) {
	id := 0
	fmt.Sscanf(string(value[:10]), "%d", &id)
	if err == nil {
		print(map[string]any{"event": "acked", "id": id})
	} else {
		print(map[string]any{"event": "failed", "id": id, "error": err.Error()})
	}
	outstanding.Add(-1)
}

// Created prints the result of the library's admin for a new topic.
func Created(err error) {
	if err == nil {
		print(map[string]any{"event": "created"})
	} else {
		print(map[string]any{"event": "refused", "error": err.Error()})
	}
}

// Run sends numbered records until standard input ends, and waits for up to 30 s for their results.
func Run(spec Spec, send func(value []byte)) {
	var ended atomic.Bool
	go func() {
		io.Copy(io.Discard, os.Stdin)
		ended.Store(true)
	}()
	sent, next := 0, time.Now()
	for !ended.Load() {
		if now := time.Now(); now.Before(next) || outstanding.Load() >= spec.Outstanding {
			time.Sleep(time.Millisecond)
			continue
		}
		value := []byte(fmt.Sprintf("%010d", sent) + strings.Repeat("x", valueBytes-10))
		outstanding.Add(1)
		before := time.Now()
		send(value)
		sent++
		next = latest(next.Add(time.Duration(float64(time.Second)/spec.Rate)), before.Add(-50*time.Millisecond))
	}
	for end := time.Now().Add(30 * time.Second); outstanding.Load() > 0 && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	print(map[string]any{"event": "done", "sent": sent})
	os.Exit(0)
}

func latest(one, other time.Time) time.Time {
	if one.After(other) {
		return one
	}
	return other
}
