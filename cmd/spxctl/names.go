package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"libspx/launch/agent"
	"libspx/launch/control"
	"libspx/launch/hosts"
	"libspx/launch/names"
	"libspx/launch/service"
)

// Names that jobs which share no host publish and look up: docs/dynamic-processes.md.

func namesCommand() *cobra.Command {
	c := &cobra.Command{Use: "names", Short: "published names of jobs that share no host"}
	c.AddCommand(namesServeCommand(), namesListCommand())
	return c
}

func namesServeCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "serve FILE",
		Short: "runs a name service until it is interrupted",
		Long: `Jobs that are started with spxrun --name-server FILE find the names that others of them publish (MPI_Publish_name, MPI_Lookup_name), on whatever hosts they run; so do jobs of other launchers with SPX_NAME_SERVER=FILE, and programs that name FILE by the info key name_server. FILE has the address of the service
and the key by which jobs and it know each other; it is made if it is not there, and has to be where spxrun is started: in a shared folder, or as a copy (scp -p). Only you can read it.
With a FILE that is there, the service comes again at the same address, with the same key: jobs that run say their names again.`,
		Args: cobra.ExactArgs(1),
	}
	listen := c.Flags().String("listen", "", "address and port (0: any that is free); default: those of FILE, or of the interface that leads to other hosts")
	iface := c.Flags().String("iface", "", "that interface, by its name or as a network (10.0.0.0/8); also by SPX_IFACE")
	c.RunE = func(_ *cobra.Command, args []string) error {
		place, err := names.Read(args[0])
		again := err == nil
		if errors.Is(err, os.ErrNotExist) {
			place, err = &names.Place{Key: names.NewKey(), File: args[0]}, nil
		}
		if err != nil {
			return err
		}
		l, err := namesListener(cmp.Or(*listen, place.At), cmp.Or(*iface, os.Getenv(service.EnvIface)))
		if err != nil {
			if *listen == "" && again {
				err = fmt.Errorf("%w; --listen ADDRESS:PORT has it listen elsewhere, and FILE says so then", err)
			}
			return err
		}
		if at := l.Addr().String(); at != place.At {
			place.At = at
			if err := place.Write(args[0]); err != nil {
				l.Close()
				return err
			}
		}
		fmt.Printf("names are served at %s (%s)\n", place.At, args[0])
		stop := make(chan os.Signal, 1)
		signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
		go func() {
			<-stop
			l.Close()
		}()
		if err := names.NewServer(place.Key, again).Serve(l); !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	}
	return c
}

// namesListener listens at an address or, without one, where other hosts reach this one.
func namesListener(at, iface string) (net.Listener, error) {
	if at == "" {
		l, err := agent.Listen(&control.Job{Hosts: []string{hosts.Self().Host}, MoreHosts: true, Iface: iface}, os.Environ())
		if err != nil {
			return nil, err
		}
		at = l.Addr().String()
		// for a socket of Go, whose address can be used again while connections of one that was
		// killed are closing
		l.Close()
	}
	l, err := net.Listen("tcp", at)
	if err != nil {
		return nil, err
	}
	if l.Addr().(*net.TCPAddr).IP.IsUnspecified() { // this address is useless to jobs
		l.Close()
		return nil, fmt.Errorf("--listen %s: jobs have to be told one address of this host", at)
	}
	return l, nil
}

func namesListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list FILE",
		Short: "lists the names that a service has",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			place, err := names.Read(args[0])
			if err != nil {
				return err
			}
			answer, err := place.Ask(c.Context(), &names.Request{Kind: names.List})
			if err != nil {
				return err
			}
			for _, e := range answer.List {
				fmt.Printf("%q  job %016x, port %s\n", e.Name, e.Job, e.Port)
			}
			return nil
		},
	}
}
