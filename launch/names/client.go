package names

import (
	"context"
	"errors"
	"fmt"
	"time"

	"libspx/net/tcp"
)

// tryLimit is for one call.
const tryLimit = callLimit + Settle

// Ask asks the server once.
func (p *Place) Ask(ctx context.Context, q *Request) (*Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, tryLimit)
	defer cancel()
	c, verdict, err := tcp.DialContext(ctx, p.At, identity(p.Key, callerNumber),
		tcp.Process{Number: serverNumber})
	if err != nil || verdict != tcp.Taken {
		if err == nil {
			err = errors.New("it takes no call")
		}
		return nil, p.explain(err)
	}
	defer hangUp(c)
	// without, the server's limit ends it
	stop := context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) }) //nolint:errcheck
	defer stop()
	q.Version = Version
	if err = Write(c, q); err == nil {
		var answer *Answer
		if answer, err = ReadAnswer(c); err == nil && answer.Text != "" {
			err = errors.New(answer.Text)
		}
		if err == nil {
			return answer, nil
		}
	}
	return nil, p.explain(err)
}

// AskUntil asks again and again while the server cannot be reached, as long as ctx lasts.
func (p *Place) AskUntil(ctx context.Context, q *Request) (answer *Answer, err error) {
	for {
		if answer, err = p.Ask(ctx, q); err == nil || errors.Is(err, tcp.ErrKey) {
			return answer, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(Retry):
		}
	}
}

// explain says of an error where it comes from, and what to do.
func (p *Place) explain(err error) error {
	if errors.Is(err, tcp.ErrKey) {
		return fmt.Errorf(
			"what listens at %s does not have the key of %s (%w): take the file that its server "+
				"uses", p.At, p.File, err)
	}
	return fmt.Errorf(
		"the name service at %s does not answer (%w); has it ended (spxctl names serve %s), or "+
			"does a firewall stand between?", p.At, err, p.File)
}
