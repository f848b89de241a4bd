package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/ioutil"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
)

// TLS has the files of a client, and the identity of its server.
type TLS struct {
	CA          string `json:"ca"`
	Certificate string `json:"certificate"`
	Key         string `json:"key"`
	// ServerName replaces the host of the target.
	ServerName string `json:"server_name"`
	// Spiffe is the URI of the server, instead of a host name, as in go-spiffe; "any" accepts each one.
	Spiffe string `json:"spiffe"`
}

// Keepalive has the pings of a connection.
type Keepalive struct {
	TimeMs        int64 `json:"time_ms"`
	TimeoutMs     int64 `json:"timeout_ms"`
	WithoutStream bool  `json:"without_stream"`
}

func options(operation Operation) []grpc.DialOption {
	options := []grpc.DialOption{grpc.WithInsecure()}
	if operation.TLS != nil {
		config, err := operation.TLS.config()
		if err != nil {
			fail("TLS: %v", err)
		}
		options = []grpc.DialOption{grpc.WithTransportCredentials(credentials.NewTLS(config))}
	}
	if pings := operation.Keepalive; pings != nil {
		options = append(options, grpc.WithKeepaliveParams(keepalive.ClientParameters{
			Time:                time.Duration(pings.TimeMs) * time.Millisecond,
			Timeout:             time.Duration(pings.TimeoutMs) * time.Millisecond,
			PermitWithoutStream: pings.WithoutStream,
		}))
	}
	return options
}

func (files *TLS) config() (*tls.Config, error) {
	roots := x509.NewCertPool()
	ca, err := ioutil.ReadFile(files.CA)
	if err != nil {
		return nil, err
	}
	if !roots.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("%s has no certificate", files.CA)
	}
	config := &tls.Config{RootCAs: roots, ServerName: files.ServerName}
	if files.Certificate != "" {
		certificate, err := tls.LoadX509KeyPair(files.Certificate, files.Key)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{certificate}
	}
	if files.Spiffe != "" {
		// The chain is verified below, without a host name.
		config.InsecureSkipVerify = true
		config.VerifyConnection = func(state tls.ConnectionState) error {
			return verifySpiffe(state.PeerCertificates, roots, files.Spiffe)
		}
	}
	return config, nil
}

// verifySpiffe verifies the chain of a server and its only URI.
func verifySpiffe(chain []*x509.Certificate, roots *x509.CertPool, wanted string) error {
	intermediates := x509.NewCertPool()
	for _, certificate := range chain[1:] {
		intermediates.AddCert(certificate)
	}
	if _, err := chain[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: intermediates}); err != nil {
		return err
	}
	if len(chain[0].URIs) != 1 || chain[0].URIs[0].Scheme != "spiffe" {
		return errors.New("the certificate of the server has no SPIFFE URI")
	}
	if found := chain[0].URIs[0].String(); wanted != "any" && found != wanted {
		return fmt.Errorf("the server is %s, and not %s", found, wanted)
	}
	return nil
}

// hold keeps a connection for some time after it is ready. It returns each change of its state, and each GOAWAY.
func hold(ctx context.Context, connection *grpc.ClientConn, operation Operation) (Answer, error) {
	goaways.forget()
	for state := connection.GetState(); state != connectivity.Ready; state = connection.GetState() {
		if !connection.WaitForStateChange(ctx, state) {
			return Answer{}, fmt.Errorf("the connection to %s is %v, and not ready", operation.Target, state)
		}
	}
	held, cancel := context.WithTimeout(ctx, time.Duration(operation.HoldMs)*time.Millisecond)
	defer cancel()
	dropped := []string{}
	state := connectivity.Ready
	for connection.WaitForStateChange(held, state) {
		state = connection.GetState()
		dropped = append(dropped, state.String())
	}
	if ctx.Err() != nil {
		return Answer{}, ctx.Err()
	}
	return Answer{Dropped: append(dropped, goaways.seen()...)}, nil
}

// Goaways is a logger of grpc-go that keeps the messages about GOAWAY.
type Goaways struct {
	mutex    sync.Mutex
	messages []string
}

var goaways Goaways

func (log *Goaways) note(message string) {
	log.mutex.Lock()
	defer log.mutex.Unlock()
	if strings.Contains(message, "GoAway") {
		log.messages = append(log.messages, strings.TrimSpace(message))
	}
}

func (log *Goaways) forget() {
	log.mutex.Lock()
	defer log.mutex.Unlock()
	log.messages = nil
}

func (log *Goaways) seen() []string {
	log.mutex.Lock()
	defer log.mutex.Unlock()
	return log.messages
}

func (log *Goaways) Info(arguments ...interface{})   { log.note(fmt.Sprint(arguments...)) }
func (log *Goaways) Infoln(arguments ...interface{}) { log.note(fmt.Sprintln(arguments...)) }
func (log *Goaways) Infof(format string, arguments ...interface{}) {
	log.note(fmt.Sprintf(format, arguments...))
}
func (log *Goaways) Warning(arguments ...interface{})   { log.note(fmt.Sprint(arguments...)) }
func (log *Goaways) Warningln(arguments ...interface{}) { log.note(fmt.Sprintln(arguments...)) }
func (log *Goaways) Warningf(format string, arguments ...interface{}) {
	log.note(fmt.Sprintf(format, arguments...))
}
func (log *Goaways) Error(arguments ...interface{})   { log.note(fmt.Sprint(arguments...)) }
func (log *Goaways) Errorln(arguments ...interface{}) { log.note(fmt.Sprintln(arguments...)) }
func (log *Goaways) Errorf(format string, arguments ...interface{}) {
	log.note(fmt.Sprintf(format, arguments...))
}
func (log *Goaways) Fatal(arguments ...interface{})                 { fail("%s", fmt.Sprint(arguments...)) }
func (log *Goaways) Fatalln(arguments ...interface{})               { fail("%s", fmt.Sprintln(arguments...)) }
func (log *Goaways) Fatalf(format string, arguments ...interface{}) { fail(format, arguments...) }
func (log *Goaways) V(int) bool                                     { return true }
