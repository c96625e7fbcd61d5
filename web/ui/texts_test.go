package ui

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kubistro/internal/lab"
)

func load(t *testing.T) *Texts {
	t.Helper()
	texts, err := LoadTexts()
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

func TestLanguagesHaveTheSameKeys(t *testing.T) {
	texts := load(t)
	zh, en := texts.byLang[lab.ZhTW], texts.byLang[lab.En]
	if len(zh) == 0 {
		t.Fatal("no texts")
	}
	for key := range zh {
		if strings.TrimSpace(zh[key]) == "" {
			t.Errorf("%s is empty in zh-TW", key)
		}
		if strings.TrimSpace(en[key]) == "" {
			t.Errorf("%s is missing in en", key)
		}
	}
	for key := range en {
		if _, ok := zh[key]; !ok {
			t.Errorf("%s is missing in zh-TW", key)
		}
	}
}

func TestLanguagesHaveTheSamePlaceholders(t *testing.T) {
	texts := load(t)
	placeholder := regexp.MustCompile(`\{\d\}`)
	used := func(s string) []string {
		found := placeholder.FindAllString(s, -1)
		slices.Sort(found)
		return slices.Compact(found)
	}
	for key, zh := range texts.byLang[lab.ZhTW] {
		if en := texts.byLang[lab.En][key]; !slices.Equal(used(zh), used(en)) {
			t.Errorf("%s: %q and %q have different placeholders", key, zh, en)
		}
	}
}

func TestChineseIsTraditionalAndTaiwanese(t *testing.T) {
	for _, word := range []string{"节", "点击", "服务", "运行", "网络", "文件夾", "默認", "內存", "軟件", "信息", "視頻", "屏幕", "集群", "容器鏡像", "鏡像", "終端窗口", "登錄", "創建", "用戶", "數據"} {
		for key, text := range load(t).byLang[lab.ZhTW] {
			if strings.Contains(text, word) {
				t.Errorf("%s: %q has %q", key, text, word)
			}
		}
	}
}

// TestKeysOfPagesExist reads the components: a key that is written out has a text.
func TestKeysOfPagesExist(t *testing.T) {
	texts := load(t)
	call := regexp.MustCompile(`\.T\("([^"]+)"[,)]`)
	files, err := filepath.Glob("*.templ")
	if err != nil || len(files) == 0 {
		t.Fatal("no components found", err)
	}
	more, err := filepath.Glob("../*.go")
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	for _, name := range append(files, more...) {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range call.FindAllStringSubmatch(string(source), -1) {
			keys[m[1]] = true
		}
	}
	for key := range keys {
		if _, ok := texts.byLang[lab.En][key]; !ok {
			t.Errorf("no text for %s", key)
		}
	}
	if len(keys) < 30 {
		t.Errorf("only %d keys found: %v", len(keys), slices.Sorted(maps.Keys(keys)))
	}
}

func TestInReplacesPlaceholders(t *testing.T) {
	texts := load(t)
	if got := texts.In(lab.En, "level.of", 1, 7); got != "Level 1 of 7" {
		t.Errorf("got %q", got)
	}
	if got := texts.In(lab.En, "no.such.key"); got != "no.such.key" {
		t.Errorf("got %q", got)
	}
}
