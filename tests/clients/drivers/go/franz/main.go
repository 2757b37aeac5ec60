// The driver of franz-go.
package main

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"quotahost.org/drivers/driver"
)

func main() {
	spec := driver.Read("github.com/twmb/franz-go")
	options := []kgo.Opt{
		kgo.SeedBrokers(spec.Bootstrap),
		kgo.ClientID(spec.User),
		kgo.SASL(plain.Auth{User: spec.User, Pass: spec.User}.AsMechanism()),
		kgo.DefaultProduceTopic(spec.Topic),
		kgo.MaxBufferedRecords(100_000),
		kgo.ProducerBatchCompression(kgo.NoCompression()), // only franz-go compresses by default; these values would vanish
	}
	if spec.Tuned() {
		options = append(options, kgo.MetadataMinAge(time.Second))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		panic(err)
	}
	if spec.Create {
		_, err := kadm.NewClient(client).CreateTopic(context.Background(), 1, 1, nil, spec.Topic)
		driver.Created(err)
		return
	}
	driver.Run(spec, func(value []byte) {
		client.Produce(context.Background(), &kgo.Record{Value: value}, func(record *kgo.Record, err error) {
			driver.Delivered(record.Value, err)
		})
	})
}
