// Client of Meridio's IPAM service over grpc-go, for the tests of the daemon.
//
// It reads operations from standard input and writes answers to standard output, a JSON object each line, as
// operation.md describes. Operations run at the same time; an answer carries the id of its operation. After the end
// of its input it waits for the running ones.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/grpclog"
	health "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	ipam "ipam/v1"
	nsp "nsp/v1"
)

// Operation is one line of input.
type Operation struct {
	ID         uint64     `json:"id"`
	Op         string     `json:"op"`
	Target     string     `json:"target"`
	TLS        *TLS       `json:"tls"`
	Keepalive  *Keepalive `json:"keepalive"`
	Connection string     `json:"connection"`
	DeadlineMs int64      `json:"deadline_ms"`
	Trench     *string    `json:"trench"`
	Conduit    *string    `json:"conduit"`
	Node       string     `json:"node"`
	Child      string     `json:"child"`
	Family     int32      `json:"family"`
	NoSubnet   bool       `json:"no_subnet"`
	Service    string     `json:"service"`
	HoldMs     int64      `json:"hold_ms"`
	Call       uint64     `json:"call"`
}

// Answer is one line of output.
type Answer struct {
	ID           uint64   `json:"id"`
	Address      string   `json:"address,omitempty"`
	PrefixLength int32    `json:"prefix_length,omitempty"`
	Status       string   `json:"status,omitempty"`
	More         bool     `json:"more,omitempty"`
	Dropped      []string `json:"dropped,omitempty"`
	Code         string   `json:"code,omitempty"`
	Text         string   `json:"text,omitempty"`
}

// Client has the connections, and the calls that can be cancelled.
type Client struct {
	mutex       sync.Mutex
	running     sync.WaitGroup
	output      *json.Encoder
	connections map[string]*grpc.ClientConn
	cancels     map[uint64]context.CancelFunc
}

func main() {
	grpclog.SetLoggerV2(&goaways)
	client := Client{
		output:      json.NewEncoder(os.Stdout),
		connections: map[string]*grpc.ClientConn{},
		cancels:     map[uint64]context.CancelFunc{},
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		decoder := json.NewDecoder(strings.NewReader(lines.Text()))
		decoder.DisallowUnknownFields()
		var operation Operation
		if err := decoder.Decode(&operation); err != nil {
			fail("%q is no operation: %v", lines.Text(), err)
		}
		client.start(operation)
	}
	if err := lines.Err(); err != nil {
		fail("standard input: %v", err)
	}
	client.running.Wait()
}

// fail ends the program: an operation that it can't begin is a defect of the test.
func fail(format string, arguments ...interface{}) {
	fmt.Fprintf(os.Stderr, "client.go: "+format+"\n", arguments...)
	os.Exit(2)
}

// start begins an operation, in the order of the lines.
func (client *Client) start(operation Operation) {
	client.mutex.Lock()
	defer client.mutex.Unlock()
	if operation.Op == "cancel" {
		if cancel, found := client.cancels[operation.Call]; found {
			cancel()
		}
		client.running.Add(1)
		go func() {
			defer client.running.Done()
			client.answer(Answer{ID: operation.ID})
		}()
		return
	}
	connection := client.connection(operation)
	ctx, cancel := context.WithCancel(context.Background())
	if operation.DeadlineMs > 0 {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(operation.DeadlineMs)*time.Millisecond)
	}
	client.cancels[operation.ID] = cancel
	client.running.Add(1)
	go func() {
		defer client.running.Done()
		answer, err := client.run(ctx, connection, operation)
		if err != nil {
			answer = Answer{Code: name(status.Code(err)), Text: status.Convert(err).Message()}
		}
		answer.ID = operation.ID
		client.mutex.Lock()
		delete(client.cancels, operation.ID)
		client.mutex.Unlock()
		cancel()
		client.answer(answer)
	}()
}

func (client *Client) answer(answer Answer) {
	client.mutex.Lock()
	defer client.mutex.Unlock()
	if err := client.output.Encode(answer); err != nil {
		fail("standard output: %v", err)
	}
}

// connection returns the connection of operations with the same target, TLS, keepalive and name.
func (client *Client) connection(operation Operation) *grpc.ClientConn {
	key, err := json.Marshal([]interface{}{operation.Target, operation.TLS, operation.Keepalive, operation.Connection})
	if err != nil {
		fail("%v", err)
	}
	if connection, found := client.connections[string(key)]; found {
		return connection
	}
	connection, err := grpc.Dial(operation.Target, options(operation)...)
	if err != nil {
		fail("%s: %v", operation.Target, err)
	}
	client.connections[string(key)] = connection
	return connection
}

func (client *Client) run(ctx context.Context, connection *grpc.ClientConn, operation Operation) (Answer, error) {
	switch operation.Op {
	case "allocate":
		prefix, err := ipam.NewIpamClient(connection).Allocate(ctx, child(operation))
		return Answer{Address: prefix.GetAddress(), PrefixLength: prefix.GetPrefixLength()}, err
	case "release":
		_, err := ipam.NewIpamClient(connection).Release(ctx, child(operation))
		return Answer{}, err
	case "health":
		request := health.HealthCheckRequest{Service: operation.Service}
		response, err := health.NewHealthClient(connection).Check(ctx, &request)
		return Answer{Status: response.GetStatus().String()}, err
	case "watch-health":
		return client.watch(ctx, connection, operation)
	case "hold":
		return hold(ctx, connection, operation)
	}
	fail("there is no operation %q", operation.Op)
	return Answer{}, nil
}

// watch reports each status of a service until the call ends.
func (client *Client) watch(ctx context.Context, connection *grpc.ClientConn, operation Operation) (Answer, error) {
	request := health.HealthCheckRequest{Service: operation.Service}
	stream, err := health.NewHealthClient(connection).Watch(ctx, &request)
	for err == nil {
		var response *health.HealthCheckResponse
		if response, err = stream.Recv(); err == nil {
			client.answer(Answer{ID: operation.ID, More: true, Status: response.GetStatus().String()})
		}
	}
	if err == io.EOF {
		err = nil
	}
	return Answer{}, err
}

// child makes the message. A name that is absent leaves its message out.
func child(operation Operation) *ipam.Child {
	if operation.NoSubnet {
		return &ipam.Child{Name: operation.Child}
	}
	subnet := &ipam.Subnet{Node: operation.Node, IpFamily: ipam.IPFamily(operation.Family)}
	if operation.Conduit != nil {
		subnet.Conduit = &nsp.Conduit{Name: *operation.Conduit}
		if operation.Trench != nil {
			subnet.Conduit.Trench = &nsp.Trench{Name: *operation.Trench}
		}
	}
	return &ipam.Child{Name: operation.Child, Subnet: subnet}
}

// name returns the name of a code as the specification of gRPC has it: DeadlineExceeded is DEADLINE_EXCEEDED.
func name(code codes.Code) string {
	if code == codes.Canceled {
		return "CANCELLED"
	}
	var name strings.Builder
	for index, letter := range code.String() {
		if index > 0 && letter < 'a' {
			name.WriteByte('_')
		}
		name.WriteRune(letter)
	}
	return strings.ToUpper(name.String())
}
