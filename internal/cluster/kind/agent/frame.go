package agent

import (
	"encoding/binary"
	"io"
)

// maxDatagram is the largest payload of UDP over IPv4.
const maxDatagram = 65507

// frame writes each datagram that is read from r with its length before it.
func frame(w io.Writer, r io.Reader) error {
	buf := make([]byte, 2+maxDatagram)
	for {
		n, err := r.Read(buf[2:])
		if err != nil {
			return err
		}
		binary.BigEndian.PutUint16(buf, uint16(n))
		if _, err := w.Write(buf[:2+n]); err != nil {
			return err
		}
	}
}

// unframe writes what frame wrote as datagrams again.
func unframe(w io.Writer, r io.Reader) error {
	buf := make([]byte, 1<<16)
	for {
		if _, err := io.ReadFull(r, buf[:2]); err != nil {
			return err
		}
		n := int(binary.BigEndian.Uint16(buf))
		if _, err := io.ReadFull(r, buf[:n]); err != nil {
			return err
		}
		if _, err := w.Write(buf[:n]); err != nil {
			return err
		}
	}
}
