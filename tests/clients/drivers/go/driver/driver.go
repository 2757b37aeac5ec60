// Package driver is what the drivers of the Go libraries share: what they are told, when they send, what they print.
// tests/clients/libraries.py says what the lines mean.
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

// Spec is what the driver is told: JSON in its only argument.
type Spec struct {
	Bootstrap   string
	User        string
	Topic       string
	Settings    string  // "default", or the name of others
	Rate        float64 // records a second
	Outstanding int64   // as many records at most are neither acknowledged nor failed
	Create      bool    // create the topic instead, and say what the library's admin says
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

// Tuned says whether the settings with which the library survives a PAUSE are asked for.
func (s Spec) Tuned() bool { return s.Settings == "tuned" }

func print(event map[string]any) {
	event["ms"] = time.Now().UnixMilli()
	line, _ := json.Marshal(event)
	printing.Lock()
	defer printing.Unlock()
	fmt.Println(string(line))
}

// Delivered prints that a record was acknowledged, or with an error that the library gave it up.
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

// Created prints what the library's admin said of a new topic.
func Created(err error) {
	if err == nil {
		print(map[string]any{"event": "created"})
	} else {
		print(map[string]any{"event": "refused", "error": err.Error()})
	}
}

// Run sends numbered records until standard input ends, and waits for up to 30 s for their ends.
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
