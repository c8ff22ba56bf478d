package front

import (
	"cmp"
	"fmt"
	"os"

	"libspx/launch/command"
	"libspx/launch/control"
	"libspx/launch/hosts"
	"libspx/launch/service"
	"libspx/launch/system"
)

// systemOf makes the job of a system file (docs/systems.md).
func systemOf(j *command.Job) (*control.Job, error) {
	s, err := system.Load(j.System)
	if err != nil {
		return nil, err
	}
	if j.Join != "" {
		s.Address = j.Join
	}
	spec := optionsOf(j)
	_, err = system.Make(spec, s, j.System, j.Cluster, j.Env, hosts.Self())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", j.System, err)
	}
	if spec.Join != nil {
		spec.Join.Calls = spec.Join.Calls || j.Join != ""
	}
	if spec.Join != nil && len(spec.Hosts) == 1 {
		spec.Iface = cmp.Or(j.Iface, os.Getenv(service.EnvIface))
		spec.Dir, err = os.Getwd()
		return spec, err
	}
	if len(spec.Hosts) > 1 {
		if _, spec.Rsh, err = hosts.Find([]string{"localhost"}, nil, j.Rsh, os.Getenv); err != nil {
			return nil, err
		}
		spec.Prefix, spec.Iface = j.Prefix, cmp.Or(j.Iface, os.Getenv(service.EnvIface))
		if err := startsOf(spec, j); err != nil {
			return nil, err
		}
		if spec.Dir, err = os.Getwd(); err != nil {
			return nil, fmt.Errorf("the working directory: %w", err)
		}
	}
	return spec, nil
}
