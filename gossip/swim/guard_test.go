package swim

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// Outsiders that open streams and send nothing block members for no longer than
// one stream may take.
func TestSilentStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		a := r.start(r.config("d1", 1, hosts(2)...))
		time.Sleep(time.Second)
		outsider, err := r.net.Transport(host(9))
		if err != nil {
			t.Fatal(err)
		}
		defer outsider.Shutdown()
		var conns []net.Conn
		for range maxInbound + 64 {
			c, err := outsider.DialTimeout(host(1), time.Second)
			if err != nil {
				t.Fatal(err)
			}
			conns = append(conns, c)
			synctest.Wait()
		}
		over := conns[maxInbound]
		over.SetReadDeadline(time.Now().Add(time.Millisecond))
		if _, err := over.Read(make([]byte, 1)); err == nil || isTimeout(err) {
			t.Errorf("stream %d stays open: %v", maxInbound+1, err)
		}
		b := r.start(r.config("d2", 2, hosts(2)...))
		r.within(10*time.Second, "join", func() bool { return agree(2, a, b) })
		for _, c := range conns {
			c.Close()
		}
	})
}

func isTimeout(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// A outsider cannot make a daemon hold more of one stream than a list needs.
func TestEndlessStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		a := r.start(r.config("d1", 1))
		outsider, err := r.net.Transport(host(9))
		if err != nil {
			t.Fatal(err)
		}
		defer outsider.Shutdown()
		c, err := outsider.DialTimeout(host(1), time.Second)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		const encrypted = 10
		head := append(binary.BigEndian.AppendUint32([]byte{encrypted}, 16<<20), 1)
		if _, err := c.Write(head); err != nil {
			t.Fatal(err)
		}
		sent, block := len(head), make([]byte, 64<<10)
		c.SetWriteDeadline(time.Now().Add(time.Minute))
		for sent < 2*maxStreamBytes {
			n, err := c.Write(block)
			sent += n
			if err != nil {
				break
			}
		}
		if sent > maxStreamBytes {
			t.Errorf("%d bytes were read", sent)
		}
		if !a.Joined() {
			t.Error("it does not live")
		}
	})
}

// Messages that only a holder of the key can make, and that memberlist by
// itself panics on.
func TestEmptyMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		a := r.start(r.config("d1", 1))
		insider, err := r.net.Transport(host(9))
		if err != nil {
			t.Fatal(err)
		}
		defer insider.Shutdown()
		for _, m := range []struct {
			version byte
			plain   []byte
		}{
			{1, nil},
			{0, bytes.Repeat([]byte{16}, 16)},
			{0, bytes.Repeat([]byte{200}, 16)},
		} {
			insider.WriteTo(seal(t, keyA, m.version, m.plain, nil), host(1))

			c, err := insider.DialTimeout(host(1), time.Second)
			if err != nil {
				t.Fatal(err)
			}
			length := len(seal(t, keyA, m.version, m.plain, nil))
			head := binary.BigEndian.AppendUint32([]byte{cipherType}, uint32(length))
			c.SetDeadline(time.Now().Add(time.Second))
			c.Write(append(head, seal(t, keyA, m.version, m.plain, head)...))
			c.Close()
			time.Sleep(time.Second)
		}
		if !a.Joined() {
			t.Error("it does not live")
		}
		if n := a.Stats().Refused["wrong_key"]; n != 5 { // all but the empty packet, which is harmless
			t.Errorf("%d refused", n)
		}
	})
}

// seal encrypts as memberlist does: version, nonce, ciphertext and tag.
func seal(t *testing.T, key []byte, version byte, plain, data []byte) []byte {
	t.Helper()
	block, err := aes.NewCipher(key)
	if err != nil {
		t.Fatal(err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	nonce := make([]byte, gcm.NonceSize())
	return gcm.Seal(append([]byte{version}, nonce...), nonce, plain, data)
}
