package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

const (
	constraintsTag = "licorne/node-constraints"
	labelPrefix    = "label/"
)

var errMismatch = errors.New("node does not match the constraints of the ask")

// constraints answers the predicate callback: may this ask run on this node? Everything is read beforehand and answered
// once for each set of constraints and each node, so that a call is three look-ups: as little as a resource manager can
// need. Understood is what the generated workloads use: a nodeSelector, and affinity terms with the operator In.
type constraints struct {
	labels map[string]map[string]string   // of each node
	named  map[string]map[string]struct{} // the nodes that a text of constraints allows
	asks   map[string]map[string]struct{} // the nodes that an ask may run on; asks without constraints are not in it
}

type demand struct {
	NodeSelector map[string]string `json:"nodeSelector"`
	NodeAffinity [][]struct {
		Key      string   `json:"key"`
		Operator string   `json:"operator"`
		Values   []string `json:"values"`
	} `json:"nodeAffinity"`
}

func newConstraints() *constraints {
	return &constraints{
		labels: map[string]map[string]string{},
		named:  map[string]map[string]struct{}{},
		asks:   map[string]map[string]struct{}{},
	}
}

func (c *constraints) addNode(id string, attributes map[string]string) {
	labels := map[string]string{}
	for name, value := range attributes {
		if key, isLabel := strings.CutPrefix(name, labelPrefix); isLabel {
			labels[key] = value
		}
	}
	c.labels[id] = labels
}

// addAsk reads the constraints of an ask; the nodes of a workload stand before its asks.
func (c *constraints) addAsk(key string, tags map[string]string) error {
	text, constrained := tags[constraintsTag]
	if !constrained {
		return nil
	}
	allowed, known := c.named[text]
	if !known {
		var d demand
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&d); err != nil {
			return fmt.Errorf("constraints of %s: %w", key, err)
		}
		allowed = map[string]struct{}{}
		for id, labels := range c.labels {
			matches, err := d.matches(labels)
			if err != nil {
				return fmt.Errorf("constraints of %s: %w", key, err)
			}
			if matches {
				allowed[id] = struct{}{}
			}
		}
		c.named[text] = allowed
	}
	c.asks[key] = allowed
	return nil
}

func (d *demand) matches(labels map[string]string) (bool, error) {
	for key, value := range d.NodeSelector {
		if got, has := labels[key]; !has || got != value {
			return false, nil
		}
	}
	if d.NodeAffinity == nil {
		return true, nil
	}
	for _, term := range d.NodeAffinity {
		holds := len(term) > 0
		for _, expression := range term {
			if expression.Operator != "In" {
				return false, fmt.Errorf("operator %q is not understood here", expression.Operator)
			}
			value, has := labels[expression.Key]
			found := false
			for _, wanted := range expression.Values {
				found = found || has && value == wanted
			}
			holds = holds && found
		}
		if holds {
			return true, nil
		}
	}
	return false, nil
}

func (c *constraints) check(key, node string) error {
	allowed, constrained := c.asks[key]
	if !constrained {
		return nil
	}
	if _, matches := allowed[node]; !matches {
		return errMismatch
	}
	return nil
}
