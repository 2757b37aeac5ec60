// The driver of sarama's AsyncProducer.
package main

import (
	"math"
	"time"

	"github.com/IBM/sarama"

	"quotahost.org/drivers/driver"
)

func main() {
	spec := driver.Read("github.com/IBM/sarama")
	config := sarama.NewConfig()
	config.Version = sarama.V3_6_0_0
	config.Net.SASL.Enable = true
	config.Net.SASL.User, config.Net.SASL.Password = spec.User, spec.User
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Return.Successes = true
	if spec.Tuned() {
		config.Producer.Idempotent = true
		config.Net.MaxOpenRequests = 1
		config.Producer.Retry.Max = 10_000
		config.Producer.Retry.BackoffFunc = func(retries, _ int) time.Duration {
			return time.Duration(math.Min(float64(retries)*100, 1000)) * time.Millisecond
		}
	}
	if spec.Create {
		create(spec, config)
		return
	}
	producer, err := sarama.NewAsyncProducer([]string{spec.Bootstrap}, config)
	if err != nil {
		panic(err)
	}
	go func() {
		for message := range producer.Successes() {
			driver.Delivered(value(message), nil)
		}
	}()
	go func() {
		for failed := range producer.Errors() {
			driver.Delivered(value(failed.Msg), failed.Err)
		}
	}()
	driver.Run(spec, func(value []byte) {
		producer.Input() <- &sarama.ProducerMessage{Topic: spec.Topic, Value: sarama.ByteEncoder(value)}
	})
}

func value(message *sarama.ProducerMessage) []byte {
	bytes, _ := message.Value.Encode()
	return bytes
}

func create(spec driver.Spec, config *sarama.Config) {
	admin, err := sarama.NewClusterAdmin([]string{spec.Bootstrap}, config)
	if err != nil {
		panic(err)
	}
	driver.Created(admin.CreateTopic(spec.Topic, &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: 1}, false))
}
