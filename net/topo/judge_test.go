package topo

import "testing"

// What two paths carried alone (100 each, once with less) and together decides, or not yet.
func TestJudgePaths(t *testing.T) {
	full := func() *solo { return &solo{rates: []float64{98, 100}, most: 100} }
	yes, no := true, false
	for _, c := range []struct {
		both     [][2]float64
		often    float64
		foreseen *bool
		apart    bool
		verdict  verdict
	}{
		{[][2]float64{{97, 99}}, 0.9, nil, false, open},
		{[][2]float64{{97, 99}, {99, 98}}, 0.9, nil, true, sure},
		{[][2]float64{{97, 99}}, 0.9, &yes, true, sure},
		{[][2]float64{{97, 99}}, 0.9, &no, false, open}, // the times disagree: once more
		{[][2]float64{{30, 40}, {97, 99}, {96, 98}}, 0.5, nil, true, sure},
		{[][2]float64{{50, 50}}, 0.9, nil, false, open},
		{[][2]float64{{50, 50}, {40, 60}}, 0.95, nil, false, sure},
		{[][2]float64{{50, 50}}, 0.9, &no, false, sure},
		// flows alone suffer as much
		{[][2]float64{{50, 50}, {40, 60}}, 0.3, nil, false, open},
		// less than one carries
		{[][2]float64{{10, 20}, {20, 10}}, 0.5, nil, false, open},
		// nothing but noise
		{[][2]float64{{10, 20}, {20, 10}, {5, 9}, {20, 20}, {10, 20}, {10, 20}, {10, 20}, {10, 20}},
			0.1, nil, false, unsure},
		// neither
		{[][2]float64{{75, 75}, {70, 75}, {72, 75}, {74, 75}, {71, 75}, {73, 75}, {75, 75},
			{74, 75}}, 0.9, nil, false, unsure},
		// more than one link carries, as foreseen
		{[][2]float64{{70, 70}, {72, 70}}, 0.9, &yes, true, sure},
	} {
		apart, v := judgePaths(c.both, [2]*solo{full(), full()}, 100, c.often, c.foreseen)
		if v != c.verdict || v == sure && apart != c.apart {
			t.Errorf("%v, often %v: apart %v, %v; want %v, %v", c.both, c.often, apart, v, c.apart,
				c.verdict)
		}
	}
}
