package terminal

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"kubistro/internal/shell"
)

var unsafeName = regexp.MustCompile(`[^a-zA-Z0-9.-]+`)

// edit is kubectl edit: the object becomes a file of the home, the browser's
// editor opens it, and what was changed is sent back.
func (k *kubectl) edit(ctx context.Context, env shell.Env, p plan) int {
	if !k.c.CanEdit {
		fmt.Fprintln(env.Err, "error: "+k.c.say("這裡沒有編輯器可以開。請改用：kubectl get 資源 -o yaml > 檔案，改好後 kubectl apply -f 檔案。", "there is no editor here. Use kubectl get RESOURCE -o yaml > FILE, change it, then kubectl apply -f FILE."))
		return 1
	}
	rest := slices.Clone(p.args)
	rest = slices.Delete(rest, slices.Index(rest, "edit"), slices.Index(rest, "edit")+1)
	if len(rest) == 0 {
		fmt.Fprintln(env.Err, "error: "+k.c.say("請說明要編輯什麼，例如 kubectl edit deployment/web。", "say what to edit, for example: kubectl edit deployment/web"))
		return 1
	}
	var before bytes.Buffer
	sub := env
	sub.Out = &before
	get := p
	get.args = append(append([]string{"get"}, rest...), "-o", "yaml")
	if code := k.invoke(ctx, sub, get); code != 0 {
		return code
	}
	name := "edit-" + strings.Trim(unsafeName.ReplaceAllString(strings.Join(rest, "-"), "-"), "-")
	name = name[:min(len(name), 80)] + ".yaml"
	if err := k.c.home.root.WriteFile(name, before.Bytes(), 0o644); err != nil {
		fmt.Fprintln(env.Err, "error: "+k.c.say("無法建立要編輯的檔案。", "the file to edit could not be made."))
		return 1
	}
	fmt.Fprintln(env.Err, k.c.say("已在編輯器開啟 "+name+"；儲存並關閉後會送回叢集（Ctrl-C 取消）。", name+" is open in the editor; it is sent back when you save and close it (Ctrl-C cancels)."))
	if err := k.c.edit(ctx, name); err != nil {
		if ctx.Err() == nil {
			fmt.Fprintln(env.Err, "error: "+err.Error())
		}
		return 1
	}
	after, err := k.c.home.root.ReadFile(name)
	if err != nil || bytes.Equal(after, before.Bytes()) {
		fmt.Fprintln(env.Out, "Edit cancelled, no changes made.")
		return 0
	}
	put := plan{args: []string{"replace", "-f", name}, verb: "replace"}
	if code := k.invoke(ctx, env, put); code != 0 {
		fmt.Fprintln(env.Err, k.c.say("你改的內容留在 "+name+"。", "What you changed is kept in "+name+"."))
		return code
	}
	k.c.home.root.Remove(name)
	return 0
}
