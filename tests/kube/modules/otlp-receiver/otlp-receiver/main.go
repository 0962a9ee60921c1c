// Command otlp-receiver runs the OTLP receiver of the OpenTelemetry Collector,
// and prints each batch of spans that it receives as a line of OTLP JSON. A
// complete Collector has the same receiver, but takes minutes to build.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
)

func main() {
	grpc := flag.String("grpc", "127.0.0.1:4317", "the `address` for OTLP over gRPC")
	http := flag.String("http", "127.0.0.1:4318", "the `address` for OTLP over HTTP")
	flag.Parse()
	if err := run(*grpc, *http); err != nil {
		log.Fatal(err)
	}
}

func run(grpc, http string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	factory := otlpreceiver.NewFactory()
	config := factory.CreateDefaultConfig()
	protocols := confmap.NewFromStringMap(map[string]any{"protocols": map[string]any{
		"grpc": map[string]any{"endpoint": grpc},
		"http": map[string]any{"endpoint": http},
	}})
	if err := protocols.Unmarshal(config); err != nil {
		return err
	}
	traces, err := consumer.NewTraces(printer())
	if err != nil {
		return err
	}
	settings := receiver.Settings{
		ID:                component.NewID(factory.Type()),
		TelemetrySettings: componenttest.NewNopTelemetrySettings(),
		BuildInfo:         component.NewDefaultBuildInfo(),
	}
	otlp, err := factory.CreateTraces(ctx, settings, config, traces)
	if err != nil {
		return err
	}
	if err := otlp.Start(ctx, componenttest.NewNopHost()); err != nil {
		return err
	}
	<-ctx.Done()
	return otlp.Shutdown(context.Background())
}

// Prints each batch as one line. Several may arrive at the same time.
func printer() consumer.ConsumeTracesFunc {
	var lock sync.Mutex
	var marshaler ptrace.JSONMarshaler
	return func(_ context.Context, batch ptrace.Traces) error {
		line, err := marshaler.MarshalTraces(batch)
		if err != nil {
			return err
		}
		lock.Lock()
		defer lock.Unlock()
		_, err = fmt.Println(string(line))
		return err
	}
}
