// An OpenID provider: the example server of github.com/zitadel/oidc, which is a certified OpenID Provider library. This
// program adds what a test needs: TLS, users with groups, a client for the device flow, keys that rotate, and a second
// listener on which a test can rotate them, and have tokens signed that the provider would never issue.
package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// provider is the storage of the example, with keys that rotate and with groups.
type provider struct {
	*storage.Storage
	groups map[string][]string
	mu     sync.Mutex
	keys   []*key
	count  int
}

// key is the key that signs.
//
// publicKey is the same key as others see it.
type key struct {
	id      string
	private *rsa.PrivateKey
}

func (k *key) SignatureAlgorithm() jose.SignatureAlgorithm { return jose.RS256 }
func (k *key) Key() any                                    { return k.private }
func (k *key) ID() string                                  { return k.id }

type publicKey struct{ *key }

func (k publicKey) Algorithm() jose.SignatureAlgorithm { return jose.RS256 }
func (k publicKey) Use() string                        { return "sig" }
func (k publicKey) Key() any                           { return &k.private.PublicKey }

// rotate replaces the key. Tokens of the old one are no longer valid.
func (p *provider) rotate() error {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count++
	p.keys = []*key{{id: "key-" + strconv.Itoa(p.count), private: private}}
	return nil
}

func (p *provider) current() *key {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.keys[0]
}

func (p *provider) SigningKey(context.Context) (op.SigningKey, error) { return p.current(), nil }

func (p *provider) KeySet(context.Context) ([]op.Key, error) {
	return []op.Key{publicKey{p.current()}}, nil
}

func (p *provider) GetClientByClientID(ctx context.Context, id string) (op.Client, error) {
	found, err := p.Storage.GetClientByClientID(ctx, id)
	if err != nil {
		return nil, err
	}
	return client{found}, nil
}

func (p *provider) SetUserinfoFromRequest(ctx context.Context, info *oidc.UserInfo, token op.IDTokenRequest, scopes []string) error {
	if err := p.Storage.SetUserinfoFromRequest(ctx, info, token, scopes); err != nil {
		return err
	}
	info.AppendClaims("groups", p.groups[token.GetSubject()])
	return nil
}

// CreateAccessAndRefreshTokens keeps the client of a login with a code. The storage of the example forgets it, and then
// refuses the refresh token.
func (p *provider) CreateAccessAndRefreshTokens(ctx context.Context, request op.TokenRequest, current string) (string, string, time.Time, error) {
	if device, ok := request.(*op.DeviceAuthorizationState); ok {
		request = &storage.RefreshTokenRequest{RefreshToken: &storage.RefreshToken{
			ApplicationID: device.ClientID,
			UserID:        device.Subject,
			Audience:      device.Audience,
			Scopes:        device.Scopes,
			AMR:           device.AMR,
			AuthTime:      device.AuthTime,
		}}
	}
	return p.Storage.CreateAccessAndRefreshTokens(ctx, request, current)
}

// client is a command on the user's machine.
type client struct{ op.Client }

func (c client) GrantTypes() []oidc.GrantType {
	return append(c.Client.GrantTypes(), oidc.GrantTypeDeviceCode)
}
func (c client) IDTokenUserinfoClaimsAssertion() bool { return true }
func (c client) IDTokenLifetime() time.Duration       { return lifetime }

var lifetime time.Duration

// sign signs any claims.
func (p *provider) sign(claims []byte) (string, error) {
	key := p.current()
	options := (&jose.SignerOptions{}).WithType("JWT").WithHeader("kid", key.id)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: key.private}, options)
	if err != nil {
		return "", err
	}
	signed, err := signer.Sign(claims)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}

func (p *provider) control(w http.ResponseWriter, r *http.Request) {
	var answer string
	var err error
	switch r.URL.Path {
	case "/rotate":
		err = p.rotate()
	case "/sign":
		var claims []byte
		if claims, err = io.ReadAll(r.Body); err == nil {
			answer, err = p.sign(claims)
		}
	default:
		err = fmt.Errorf("unknown path %s", r.URL.Path)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	fmt.Fprint(w, answer)
}

func main() {
	listen := flag.String("listen", "", "address of the provider; the issuer is https:// and this address")
	control := flag.String("control", "", "address for the test")
	certificate := flag.String("certificate", "", "PEM")
	certificateKey := flag.String("key", "", "PEM")
	users := flag.String("users", "", "a file with users, as the example server reads them; IDs must equal names")
	groups := flag.String("groups", "", "a file with the groups of each user, in JSON")
	flag.DurationVar(&lifetime, "lifetime", time.Hour, "how long ID tokens are valid")
	flag.Parse()

	store, err := storage.StoreFromFile(*users)
	if err != nil {
		log.Fatal(err)
	}
	text, err := os.ReadFile(*groups)
	if err != nil {
		log.Fatal(err)
	}
	// A native client of this library is public. It may use any port of a loopback address (RFC 8252 section 7.3).
	storage.RegisterClients(storage.NativeClient("atoll", "http://127.0.0.1/callback"))
	p := &provider{Storage: storage.NewStorage(store)}
	if err := json.Unmarshal(text, &p.groups); err != nil {
		log.Fatal(err)
	}
	if err := p.rotate(); err != nil {
		log.Fatal(err)
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	router := exampleop.SetupServer("https://"+*listen, p, logger, false)
	go func() { log.Fatal(http.ListenAndServe(*control, http.HandlerFunc(p.control))) }()
	log.Fatal(http.ListenAndServeTLS(*listen, *certificate, *certificateKey, router))
}
