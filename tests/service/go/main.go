// A resource manager made with the official generated stubs of the scheduler interface. It registers, reports nodes and
// an application, asks, is told decisions, releases, and says goodbye; any surprise ends it with a message.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/apache/yunikorn-scheduler-interface/lib/go/si"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

const rm = "go"

func must(err error) {
	if err != nil {
		fmt.Println("FAILED:", err)
		os.Exit(1)
	}
}

func expect(holds bool, what ...any) {
	if !holds {
		fmt.Println(append([]any{"FAILED: unexpected"}, what...)...)
		os.Exit(1)
	}
}

func vcore(amount int64) *si.Resource {
	return &si.Resource{Resources: map[string]*si.Quantity{"vcore": {Value: amount}}}
}

func main() {
	connection, err := grpc.NewClient(os.Args[1], grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(err)
	defer connection.Close()
	client := si.NewSchedulerClient(connection)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()

	// Who is not registered is told to resync.
	early, err := client.UpdateNode(ctx)
	must(err)
	must(early.Send(&si.NodeRequest{RmID: rm}))
	_, err = early.Recv()
	expect(status.Code(err) == codes.FailedPrecondition && strings.HasPrefix(status.Convert(err).Message(), "RESYNC"), err)

	_, err = client.RegisterResourceManager(ctx, &si.RegisterResourceManagerRequest{RmID: "", Version: "1"})
	expect(status.Code(err) == codes.InvalidArgument, err)
	_, err = client.RegisterResourceManager(ctx, &si.RegisterResourceManagerRequest{
		RmID: rm, Version: "1", PolicyGroup: "queues", BuildInfo: map[string]string{"goVersion": "any"},
	})
	must(err)

	nodes, err := client.UpdateNode(ctx)
	must(err)
	for _, name := range []string{"n1", "n2"} {
		must(nodes.Send(&si.NodeRequest{RmID: rm, Nodes: []*si.NodeInfo{{
			NodeID: name, Action: si.NodeInfo_CREATE, SchedulableResource: vcore(2000),
			Attributes: map[string]string{"si/hostname": name},
		}}}))
		answer, err := nodes.Recv()
		must(err)
		expect(len(answer.Accepted) == 1 && answer.Accepted[0].NodeID == name, answer)
	}

	applications, err := client.UpdateApplication(ctx)
	must(err)
	must(applications.Send(&si.ApplicationRequest{RmID: rm, New: []*si.AddApplicationRequest{{
		ApplicationID: "app", QueueName: "root.default", Ugi: &si.UserGroupInformation{User: "ann", Groups: []string{"dev"}},
		Tags: map[string]string{"namespace": "dev"},
	}}}))
	accepted, err := applications.Recv()
	must(err)
	expect(len(accepted.Accepted) == 1 && accepted.Accepted[0].ApplicationID == "app", accepted)

	allocations, err := client.UpdateAllocation(ctx)
	must(err)
	var asks []*si.Allocation
	for i := range 5 {
		asks = append(asks, &si.Allocation{
			AllocationKey: fmt.Sprintf("pod-%d", i), ApplicationID: "app", ResourcePerAlloc: vcore(1000), Priority: int32(-i),
			PreemptionPolicy: &si.PreemptionPolicy{AllowPreemptSelf: true},
		})
	}
	must(allocations.Send(&si.AllocationRequest{RmID: rm, Allocations: asks}))
	where := map[string]string{}
	for len(where) < 4 {
		answer, err := allocations.Recv()
		must(err)
		for _, made := range answer.New {
			expect(made.ResourcePerAlloc.Resources["vcore"].Value == 1000 && made.ApplicationID == "app", made)
			where[made.AllocationKey] = made.NodeID
		}
	}
	expect(where["pod-4"] == "", where)

	must(allocations.Send(&si.AllocationRequest{RmID: rm, Releases: &si.AllocationReleasesRequest{
		AllocationsToRelease: []*si.AllocationRelease{{
			ApplicationID: "app", AllocationKey: "pod-0", TerminationType: si.TerminationType_STOPPED_BY_RM,
		}},
	}}))
	released := false
	for where["pod-4"] == "" || !released {
		answer, err := allocations.Recv()
		must(err)
		for _, gone := range answer.Released {
			expect(gone.AllocationKey == "pod-0" && gone.TerminationType == si.TerminationType_STOPPED_BY_RM, gone)
			released = true
		}
		for _, made := range answer.New {
			where[made.AllocationKey] = made.NodeID
		}
	}
	expect(where["pod-4"] == where["pod-0"], where)

	// Goodbye: it closes its streams, and gets what waits for it before they end.
	must(nodes.CloseSend())
	must(applications.CloseSend())
	must(allocations.CloseSend())
	for {
		if _, err = applications.Recv(); err != nil { // states of the application may come before
			break
		}
	}
	expect(err == io.EOF, err)
	_, err = nodes.Recv()
	expect(err == io.EOF, err)
	_, err = allocations.Recv()
	expect(err == io.EOF, err)
	fmt.Println("all is well")
}
