module licorne/tests/service

go 1.25.0

require (
	github.com/apache/yunikorn-scheduler-interface v0.0.0-20260528033204-c474acff6d53
	google.golang.org/grpc v1.79.3
)

require (
	golang.org/x/net v0.54.0 // indirect
	golang.org/x/sys v0.45.0 // indirect
	golang.org/x/text v0.37.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20251202230838-ff82c1b0f217 // indirect
	google.golang.org/protobuf v1.36.11 // indirect
)
