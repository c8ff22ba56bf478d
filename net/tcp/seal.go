package tcp

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"time"
)

// TLS 1.3 begins once both have proved that they hold the key, and before the verdict: so what is
// decided, and all that follows, is out of reach of a man in the middle. The two certificates are
// made for this one conversation: their private keys follow from the job's key, both nonces and the
// two identities. So each end can compute the public key that the other must have, no authority is
// consulted, dates do not count, and an attacker that relays a conversation to another process, or
// has the certificate of another conversation, is refused. The keys of the records come from an
// exchange of their own (ECDHE): an attacker that learns the job's key later cannot read earlier
// recordings.

// ends are the roles in the derivation of keys.
const (
	sealFrom = "tls from"
	sealTo   = "tls to"
)

// noEnd is the date of RFC 5280 for certificates that do not expire.
var noEnd = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)

// certificate makes that of one end.
func certificate(key *[32]byte, role string, said, nonce []byte) (tls.Certificate,
	ed25519.PublicKey, error) {
	private := ed25519.NewKeyFromSeed(mac(key, role, said, nonce))
	public := private.Public().(ed25519.PublicKey)
	form := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0),
		NotAfter: noEnd}
	der, err := x509.CreateCertificate(rand.Reader, form, form, public, private)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}, public, err
}

// seal makes a stream of TLS out of the plain one. ErrKey: the other end is not the one that has
// proved to hold the key, or takes this one for another process: a man in the middle.
func seal(s io.ReadWriter, id *Identity, calling bool, said, nonce []byte) (io.ReadWriter, error) {
	if !id.TLS {
		return s, nil
	}
	stream, ok := s.(net.Conn)
	if !ok {
		return nil, errors.New("TLS needs a connection")
	}
	mine, theirs := sealTo, sealFrom
	if calling {
		mine, theirs = theirs, mine
	}
	own, _, err := certificate(&id.Key, mine, said, nonce)
	if err != nil {
		return nil, err
	}
	want := ed25519.NewKeyFromSeed(mac(&id.Key, theirs, said, nonce)).Public().(ed25519.PublicKey)
	config := &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{own},
		ClientAuth:   tls.RequireAnyClientCert,
		// no authority has signed these certificates: VerifyConnection compares the key
		InsecureSkipVerify:     true,
		SessionTicketsDisabled: true,
		// Records are full from the first one on: what is sent is mostly long, or waits for
		// nothing.
		DynamicRecordSizingDisabled: true,
		VerifyConnection: func(c tls.ConnectionState) error {
			if len(c.PeerCertificates) != 1 || !want.Equal(c.PeerCertificates[0].PublicKey) {
				return ErrKey
			}
			return nil
		},
	}
	sealed := tls.Server(stream, config)
	if calling {
		sealed = tls.Client(stream, config)
	}
	if err := sealed.Handshake(); err != nil {
		return nil, sealError(err)
	}
	return sealed, nil
}

// sealError distinguishes signs of a man in the middle, or of changed bytes, from a stream that has
// ended.
func sealError(err error) error {
	var op *net.OpError
	if header := (tls.RecordHeaderError{}); errors.Is(err, ErrKey) || errors.As(err, &header) ||
		errors.As(err, &op) && (op.Op == "local error" || op.Op == "remote error") {
		return fmt.Errorf("%w (%v)", ErrKey, err)
	}
	return fmt.Errorf("TLS: %w", err)
}

// IsChanged reports whether an error of a sealed stream's Read means that bytes arrived that the
// other end has not written. The end of a stream, and a lost one, are no such errors.
func IsChanged(err error) bool {
	var op *net.OpError
	header := tls.RecordHeaderError{}
	return errors.As(err, &header) || errors.As(err, &op) && op.Op == "local error"
}

// IsRefused reports whether the other end has ended a sealed stream because bytes have come there
// that this end has not written.
func IsRefused(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}
