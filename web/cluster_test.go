package web_test

import (
	"testing"

	"kubistro/internal/lab"
	"kubistro/web/webtest"
)

func TestKitchensLoopsAndClock(t *testing.T) {
	c := newClient(t, webtest.NewServer(t, nil))
	base := "/api/v1/sessions/" + c.open()
	type kitchens struct{ Kitchens []lab.KitchenState }
	type loops struct{ Loops []lab.ControlLoop }
	got := want[kitchens](c, 200, "POST", base+"/kitchens", `{"name":"annex","cpu":"4","memory":"4Gi","taints":["event=wedding:NoSchedule"]}`)
	if len(got.Kitchens) != 4 || got.Kitchens[3].Name != "annex" || got.Kitchens[3].CPU != "4" || len(got.Kitchens[3].Taints) != 1 || !got.Kitchens[3].Power {
		t.Errorf("after adding: %+v", got)
	}
	got = want[kitchens](c, 200, "PUT", base+"/kitchens/annex", `{"cable":false}`)
	if !got.Kitchens[3].Power || got.Kitchens[3].Cable {
		t.Errorf("after pulling the cable: %+v", got)
	}
	if got = want[kitchens](c, 200, "PUT", base+"/kitchens/annex", `{"power":false,"cable":true}`); got.Kitchens[3].Power || !got.Kitchens[3].Cable {
		t.Errorf("after a loss of power: %+v", got)
	}
	if got = want[kitchens](c, 200, "DELETE", base+"/kitchens/annex", ""); len(got.Kitchens) != 3 {
		t.Errorf("after removing: %+v", got)
	}
	if got := want[loops](c, 200, "PUT", base+"/loops", `{"name":"kube-scheduler","home":true}`); got.Loops[0].Name != "kube-scheduler" || !got.Loops[0].Home || got.Loops[1].Home {
		t.Errorf("loops: %+v", got)
	}
	clock := want[lab.Clock](c, 200, "PUT", base+"/clock", `{"speed":10}`)
	if clock.Speed != 10 || clock.Figures[0].RealMillis != 50_000 || clock.Figures[0].NowMillis != 5_000 {
		t.Errorf("clock: %+v", clock)
	}
	for path, body := range map[string]string{"/kitchens/annex": `{"power":true}`, "/loops": `{"name":"cat-herder","home":true}`} {
		if r := c.do("PUT", base+path, body); r.StatusCode != 404 {
			t.Errorf("%s: %d %s", path, r.StatusCode, r.body)
		}
	}
	if r := c.do("PUT", base+"/clock", `{"speed":0}`); r.StatusCode != 400 {
		t.Errorf("a clock that stands still: %d %s", r.StatusCode, r.body)
	}
	if r := c.do("PUT", base+"/kitchens/annex", `{"petrol":true}`); r.StatusCode != 400 {
		t.Errorf("an unknown field: %d %s", r.StatusCode, r.body)
	}
}

func TestEtcdAndEncryption(t *testing.T) {
	c := newClient(t, webtest.NewServer(t, nil))
	base := "/api/v1/sessions/" + c.open()
	page := want[lab.EtcdKeys](c, 200, "GET", base+"/etcd?prefix=/registry/secrets/&limit=1", "")
	if len(page.Keys) != 1 || page.Keys[0].Key != "/registry/secrets/default/door" || !page.More {
		t.Errorf("first page: %+v", page)
	}
	page = want[lab.EtcdKeys](c, 200, "GET", base+"/etcd?prefix=/registry/secrets/&after=/registry/secrets/default/door", "")
	if len(page.Keys) != 1 || page.Keys[0].Key != "/registry/secrets/default/sauce" || page.More {
		t.Errorf("second page: %+v", page)
	}
	if v := want[lab.EtcdValue](c, 200, "GET", base+"/etcd/value?key=/registry/secrets/default/sauce", ""); len(v.Value) == 0 || v.Size != len(v.Value) {
		t.Errorf("value: %+v", v)
	}
	if e := want[lab.EncryptionState](c, 200, "GET", base+"/encryption", ""); e.On {
		t.Errorf("encryption of a new cluster: %+v", e)
	}
	if e := want[lab.EncryptionState](c, 200, "PUT", base+"/encryption", `{"on":true,"provider":"aescbc"}`); !e.On || e.Provider != "aescbc" {
		t.Errorf("encryption after switching it on: %+v", e)
	}
	for path, code := range map[string]int{"/etcd?limit=many": 400, "/etcd/value?key=/registry/nothing": 404} {
		if r := c.do("GET", base+path, ""); r.StatusCode != code {
			t.Errorf("%s: %d %s", path, r.StatusCode, r.body)
		}
	}
	if r := c.do("PUT", base+"/encryption", `{"off":true}`); r.StatusCode != 400 {
		t.Errorf("an unknown field: %d %s", r.StatusCode, r.body)
	}
}
