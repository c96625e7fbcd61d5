package kind

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"kubistro/internal/lab"
)

// namePrefix begins the names of all kind clusters that any server of ours makes.
const namePrefix = "kubistro-"

// fileOwner holds what tells this data folder's clusters from others'.
const fileOwner = "owner"

const fileRecord = "record.json"

var goodOwner = regexp.MustCompile(`^[a-z2-7]{8}$`)

// ownerOf reads the folder's owner, or makes one.
func ownerOf(root string) (string, error) {
	path := filepath.Join(root, fileOwner)
	b, err := os.ReadFile(path)
	if err == nil {
		owner := strings.TrimSpace(string(b))
		if !goodOwner.MatchString(owner) {
			return "", fmt.Errorf("%s holds %q", path, owner)
		}
		return owner, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	owner := strings.ToLower(rand.Text()[:8])
	return owner, os.WriteFile(path, []byte(owner+"\n"), 0o600)
}

// record is what is kept of a cluster, in its folder.
type record struct {
	Spec    lab.ClusterSpec `json:"spec"`
	Created time.Time       `json:"created"`
	Made    bool            `json:"made"` // it was ready once
	// Nodes are the containers by their nodes' names.
	Nodes map[string]string `json:"nodes"`
	// LabToken and LearnerToken are the bearer tokens of the lab itself and of its learner.
	LabToken     string `json:"labToken"`
	LearnerToken string `json:"learnerToken"`
	// BalancerToken is that of who gives load balancers their addresses.
	BalancerToken string `json:"balancerToken,omitempty"`
	CA            []byte `json:"ca,omitempty"`      // PEM of the API server's authority
	Address       string `json:"address,omitempty"` // of the API server on this machine
	// Controllers are those of the controller manager.
	Controllers []string `json:"controllers,omitempty"`
	Changes     changes  `json:"changes"`
}

// changes are what was made of the cluster since it was created, and is kept over a sleep.
type changes struct {
	Off   []string `json:"off,omitempty"`   // kitchens without power
	Cut   []string `json:"cut,omitempty"`   // kitchens without cable
	Home  []string `json:"home,omitempty"`  // control loops that were sent home
	Speed int      `json:"speed,omitempty"` // of the clock; 0: the spec's
	// Added are kitchens that the spec doesn't have; Removed are kitchens of the spec.
	Added   []lab.Kitchen `json:"added,omitempty"`
	Removed []string      `json:"removed,omitempty"`
	// Encryption is the EncryptionConfiguration that the API server was given.
	Encryption string `json:"encryption,omitempty"`
}

// set adds or removes a name.
func set(list []string, name string, in bool) []string {
	list = slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == name })
	if in {
		list = append(list, name)
		slices.Sort(list)
	}
	return list
}

// container is the container of the control plane's node.
func (r *record) office() string { return r.Nodes[officeName] }

func newRecord(name string, spec lab.ClusterSpec, now time.Time) *record {
	r := &record{Spec: spec, Created: now, LabToken: rand.Text() + rand.Text(), LearnerToken: rand.Text() + rand.Text(), BalancerToken: rand.Text() + rand.Text()}
	r.Nodes = map[string]string{officeName: name + "-control-plane"}
	for i, k := range spec.Kitchens {
		// kind numbers nodes of a role from the second on: providers/common/namer.go.
		r.Nodes[k.Name] = name + "-worker"
		if i > 0 {
			r.Nodes[k.Name] += fmt.Sprint(i + 1)
		}
	}
	return r
}

// recordOf reads the record of a cluster that is to be there; the error is a *lab.Error.
func (d *Driver) recordOf(id string) (*record, error) {
	r, err := d.readRecord(id)
	if err != nil {
		return nil, problem(err)
	}
	if r == nil {
		return nil, missing(id)
	}
	return r, nil
}

// readRecord reads a cluster's record; nil when there is none.
func (d *Driver) readRecord(id string) (*record, error) {
	b, err := os.ReadFile(filepath.Join(d.dir(id), fileRecord))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var r record
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, fmt.Errorf("record of cluster %s: %w", id, err)
	}
	return &r, nil
}

func (d *Driver) writeRecord(id string, r *record) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(d.dir(id), 0o700); err != nil {
		return err
	}
	path := filepath.Join(d.dir(id), fileRecord)
	if err := os.WriteFile(path+".new", append(b, '\n'), 0o600); err != nil {
		return fmt.Errorf("write record: %w", err)
	}
	return os.Rename(path+".new", path)
}

// kitchens lists the kitchens' names: the spec's, in the order in which kind made
// them, and those that were added.
func (r *record) kitchens() []string {
	var out []string
	for _, k := range r.Spec.Kitchens {
		if !slices.Contains(r.Changes.Removed, k.Name) {
			out = append(out, k.Name)
		}
	}
	for _, k := range r.Changes.Added {
		out = append(out, k.Name)
	}
	return out
}

func (r *record) added(name string) bool {
	return slices.ContainsFunc(r.Changes.Added, func(k lab.Kitchen) bool { return k.Name == name })
}

// kitchen finds a kitchen; nil for the office.
func (r *record) kitchen(name string) *lab.Kitchen {
	for _, k := range slices.Concat(r.Changes.Added, r.Spec.Kitchens) {
		if k.Name == name {
			return &k
		}
	}
	return nil
}

// speed is that of the clock.
func (r *record) speed() int {
	if r.Changes.Speed > 0 {
		return r.Changes.Speed
	}
	return r.Spec.Speed
}
