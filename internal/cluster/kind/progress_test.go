package kind

import (
	"errors"
	"slices"
	"testing"

	"kubistro/internal/lab"
)

func TestProgressIsKindsOwn(t *testing.T) {
	d, _ := newTestDriver(t, &fakeMaker{fail: errors.New("enough")})
	var begun, ended []string
	_, err := d.Create(t.Context(), "c", lab.DefaultClusterSpec(), func(s lab.Stage) {
		if s.Started.IsZero() || s.Millis < 0 {
			t.Errorf("odd stage %+v", s)
		}
		if s.Done {
			ended = append(ended, s.Name)
		} else {
			begun = append(begun, s.Name)
		}
	})
	if err == nil {
		t.Fatal("created")
	}
	want := []string{stageImage, stageNodes, stageConfig, stageControlPlane, stageNetwork, stageStorage, stageKitchens}
	if !slices.Equal(begun, want) {
		t.Errorf("stages = %v, want %v", begun, want)
	}
	if !slices.Equal(ended, want[:len(want)-1]) {
		t.Errorf("ended = %v: one stage ends when the next begins", ended)
	}
}
