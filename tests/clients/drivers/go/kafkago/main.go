// The driver of kafka-go's Writer, which completes messages asynchronously.
package main

import (
	"context"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl/plain"

	"quotahost.org/drivers/driver"
)

func main() {
	spec := driver.Read("github.com/segmentio/kafka-go")
	transport := &kafka.Transport{
		SASL:     plain.Mechanism{Username: spec.User, Password: spec.User},
		ClientID: spec.User,
	}
	if spec.Create {
		create(spec, transport)
		return
	}
	writer := &kafka.Writer{
		Addr:         kafka.TCP(spec.Bootstrap),
		Topic:        spec.Topic,
		Transport:    transport,
		RequiredAcks: kafka.RequireAll,
		BatchTimeout: 10 * time.Millisecond, // 1 s by default, whatever the state
		Async:        true,
		Completion: func(messages []kafka.Message, err error) {
			for _, message := range messages {
				driver.Delivered(message.Value, err)
			}
		},
	}
	if spec.Tuned() {
		writer.MaxAttempts = 1_000
		writer.WriteBackoffMin = 250 * time.Millisecond
		writer.WriteBackoffMax = time.Second
	}
	driver.Run(spec, func(value []byte) {
		if err := writer.WriteMessages(context.Background(), kafka.Message{Value: value}); err != nil {
			driver.Delivered(value, err)
		}
	})
}

// A refused topic is no error of the call: only the response has the error.
func create(spec driver.Spec, transport *kafka.Transport) {
	client := &kafka.Client{Addr: kafka.TCP(spec.Bootstrap), Transport: transport, Timeout: 30 * time.Second}
	_, err := client.CreateTopics(context.Background(), &kafka.CreateTopicsRequest{
		Topics: []kafka.TopicConfig{{Topic: spec.Topic, NumPartitions: 1, ReplicationFactor: 1}},
	})
	driver.Created(err)
}
