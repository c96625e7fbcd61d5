package operate

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"kubistro/internal/lab"
)

const maxConfig = 64 << 10

func (c *command) etcd(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return c.wrong("要 list 或 get", "list or get?")
	}
	switch args[0] {
	case "list", "ls":
		return c.etcdList(ctx, args[1:])
	case "get":
		return c.etcdGet(ctx, args[1:])
	}
	return c.wrong("etcd 只能 list 或 get，不能「%s」", "etcd can be asked to list or get, not to %q", args[0])
}

func (c *command) etcdList(ctx context.Context, args []string) error {
	fs := flags()
	asJSON := fs.Bool("json", false, "")
	rest, err := parse(fs, args)
	if err != nil {
		return err
	}
	if len(rest) > 1 {
		return c.wrong("只能有一個前綴", "one prefix is enough")
	}
	prefix := strings.Join(rest, "")
	var all []lab.EtcdKey
	for after, more := "", true; more; {
		page, err := c.c.EtcdKeys(ctx, prefix, after, 0)
		if err != nil {
			return err
		}
		for _, k := range page.Keys {
			after = k.Key
			if !*asJSON {
				if _, err := fmt.Fprintln(c.env.Out, k.Key); err != nil {
					return err
				}
				continue
			}
			all = append(all, k)
		}
		more = page.More && len(page.Keys) > 0
	}
	if *asJSON {
		return c.json(all)
	}
	return nil
}

func (c *command) etcdGet(ctx context.Context, args []string) error {
	fs := flags()
	asJSON, raw := fs.Bool("json", false, ""), fs.Bool("raw", false, "")
	rest, err := parse(fs, args)
	if err != nil {
		return err
	}
	if len(rest) != 1 {
		return c.wrong("要寫出一個鍵，例如 /registry/secrets/default/NAME", "one key must be named, for instance /registry/secrets/default/NAME")
	}
	v, err := c.c.EtcdValue(ctx, rest[0])
	var e *lab.Error
	if errors.As(err, &e) && e.Code == lab.CodeNotFound {
		return fmt.Errorf(c.say("etcd 裡沒有鍵 %s（lab etcd list 會列出所有的鍵）", "etcd has no key %s (lab etcd list names them)"), rest[0])
	}
	if err != nil {
		return err
	}
	switch {
	case *asJSON:
		return c.json(v)
	case *raw:
		_, err = c.env.Out.Write(v.Value)
	default:
		_, err = io.WriteString(c.env.Out, hex.Dump(v.Value))
	}
	if err == nil && len(v.Value) < v.Size {
		fmt.Fprintf(c.env.Err, c.say("lab: 只顯示 %d 個位元組中的前 %d 個\n", "lab: of %d bytes these are the first %d\n"), v.Size, len(v.Value))
	}
	return err
}

func (c *command) encryption(ctx context.Context, args []string) error {
	var change lab.EncryptionChange
	fs := flags()
	asJSON, file := fs.Bool("json", false, ""), fs.String("f", "", "")
	fs.StringVar(file, "filename", "", "")
	fs.StringVar(&change.Provider, "provider", "", "")
	resources := func(s string) error {
		change.Resources = append(change.Resources, strings.Split(s, ",")...)
		return nil
	}
	fs.Func("resource", "", resources)
	fs.Func("resources", "", resources)
	rest, err := parse(fs, args)
	if err != nil {
		return err
	}
	if *file != "" {
		if change.Config, err = c.readFile(*file); err != nil {
			return err
		}
	}
	switch do := strings.Join(rest, " "); {
	case do == "on", do == "" && *file != "":
		change.On = true
		err = c.c.SetEncryption(ctx, change)
	case do == "off" && *file == "":
		err = c.c.SetEncryption(ctx, lab.EncryptionChange{})
	case do != "":
		return c.wrong("加密只能 on 或 off，不能「%s」", "encryption can be switched on or off, not %q", do)
	}
	if err != nil {
		return err
	}
	now, err := c.c.Encryption(ctx)
	if err != nil {
		return err
	}
	if *asJSON {
		return c.json(now)
	}
	if !now.On {
		c.print("靜態加密：關閉，寫入 etcd 的內容不加密", "encryption at rest: off, what is written to etcd is not encrypted")
		if now.Config != "" {
			c.print("先前加密的內容仍然讀得到（金鑰還留著），重新寫入之後才會變成沒有加密", "what was encrypted before can still be read (its key is kept) and stays encrypted until it is written again")
		}
		return nil
	}
	c.print("靜態加密：開啟，新寫入的 %s 以 %s 加密（金鑰 %s）", "encryption at rest: on, %s are encrypted by %s when they are written (key %s)", strings.Join(now.Resources, ", "), now.Provider, now.Key)
	if len(rest) > 0 || *file != "" {
		c.print("已經存著的內容不變，重新寫入之後才會加密：", "what is stored already stays as it is until it is written again:")
		fmt.Fprintf(c.env.Out, "  kubectl get %s -A -o json | kubectl replace -f -\n", now.Resources[0])
	}
	return nil
}

// readFile reads a configuration of the learner's home; "-" is the standard input.
func (c *command) readFile(name string) (string, error) {
	in := c.env.In
	if name != "-" {
		full := name
		if !path.IsAbs(name) {
			full = path.Join(c.env.Dir, name)
		}
		f, err := c.env.FS.OpenFile(full, os.O_RDONLY, 0)
		if err != nil {
			return "", fmt.Errorf(c.say("讀不到 %s", "can't read %s"), name)
		}
		defer f.Close()
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, maxConfig+1))
	if err != nil {
		return "", fmt.Errorf(c.say("讀不到 %s", "can't read %s"), name)
	}
	if len(b) > maxConfig || len(b) == 0 {
		return "", fmt.Errorf(c.say("%s 不是 EncryptionConfiguration", "%s is no EncryptionConfiguration"), name)
	}
	return string(b), nil
}
