// The text of oob.proto as a module, so that the bundle carries it. A test holds this equal to oob.proto; `UPDATE_PROTO=1 npx vitest run
// --project unit test/unit/launch` writes it again.
export const OOB_PROTO = `// The out-of-band channel between the launcher and its ranks: protobuf messages, one per binary WebSocket message.
// This file is the definition; src/launch/oob/proto.ts carries its text into the bundle, and a test holds the two equal.
// Fields are only ever appended.
syntax = "proto3";
package multirail.oob.v1;

// What every WebSocket message is. Handshake messages, acks and pings have sequence 0; all others count from 1 in each
// direction, are kept until acknowledged, and are sent again after a reconnect.
message Envelope {
  uint64 sequence = 1;
  // Highest sequence that the sender of this envelope has taken, in order.
  uint64 acknowledged = 2;
  oneof body {
    Challenge challenge = 10;
    Hello hello = 11;
    Welcome welcome = 12;
    Refused refused = 13;
    Ping ping = 14;
    Ack ack = 15;
    ModexPut modex_put = 20;
    ModexPart modex_part = 21;
    ModexUpdate modex_update = 22;
    BarrierEnter barrier_enter = 23;
    BarrierDone barrier_done = 24;
    CollectiveFailed collective_failed = 25;
    Abort abort = 26;
    ProcessExit process_exit = 27;
    RailEvent rail_event = 28;
    Finalized finalized = 29;
    WaitsAsk waits_ask = 30;
    WaitsRequest waits_request = 31;
    WaitsReport waits_report = 32;
    BarrierAsk barrier_ask = 33;
    BarrierMissing barrier_missing = 34;
    StandbyState standby_state = 35;
    StandbyCall standby_call = 36;
    ProcessJoined process_joined = 37;
    StandbysEnd standbys_end = 38;
    Unreachable unreachable = 39;
    Telemetry telemetry = 50;
    RailFault rail_fault = 51;
  }
}

// Launcher to rank, first message of a connection.
message Challenge {
  uint32 version = 1;
  bytes nonce = 2;
  // For ranks that know where the job meets and what its secret is, but not its name. The proofs cover it.
  string job_id = 3;
}

// Rank to launcher: who it is, and the proof that it knows the job's secret.
message Hello {
  uint32 version = 1;
  string job_id = 2;
  uint32 rank = 3;
  uint32 size = 4;
  uint64 incarnation = 5;
  uint32 pid = 6;
  string host_id = 7;
  bytes nonce = 8;
  uint64 received = 9;
  bytes proof = 10;
  // This connection carries nothing: it lives as long as the process does, whatever the process is busy with, and its end is the
  // kernel's message that the process is gone. Only where no launcher waits for the processes.
  bool lifeline = 11;
  // A process that may come after the start. standby: it is no process of the start; rank is the number that the launcher has kept for it, or
  // 0. index: it is the process of that rank, or comes in its place where an older incarnation has joined before.
  string join = 12;
}

// Launcher to rank: its own proof, and how far it has come with this rank's messages.
message Welcome {
  uint64 received = 1;
  bytes proof = 2;
  // To a Hello with join: the number of the process from now on, and the number of processes of the start.
  uint32 number = 3;
  uint32 size = 4;
}

message Refused {
  string reason = 1;
  string text = 2;
}

message Ping {
}

message Ack {
}

// One rank's part of an allgather. The JSON is opaque to the launcher.
message ModexPut {
  bytes json = 1;
}

// The outcome of an allgather, the same for every rank, cut into parts that stay under the bound on one message. The parts together are raw
// DEFLATE of the length of each rank's JSON (u32, little-endian, by rank) and then the JSON of each, by rank.
message ModexPart {
  reserved 1;
  bool last = 2;
  bytes packed = 3;
  // To a process that joined after the start: so many entries, by number; those of processes that are over are empty. 0: those of the start.
  uint32 count = 4;
}

// A rank's addresses changed after the modex: from that rank to the launcher, and on to everybody else.
message ModexUpdate {
  uint32 rank = 1;
  bytes json = 2;
}

message BarrierEnter {
  string name = 1;
  // Ranks that are dead count as arrived.
  bool tolerant = 2;
}

message BarrierDone {
  string name = 1;
  repeated uint32 dead = 2;
}

// Rank to launcher: who has not come to that barrier? The answer is for people.
message BarrierAsk {
  string name = 1;
}

message BarrierMissing {
  string name = 1;
  repeated uint32 ranks = 2;
}

// A modex (name is empty) or a barrier can never complete, since that rank is gone.
message CollectiveFailed {
  bool modex = 1;
  string name = 2;
  uint32 rank = 3;
  string text = 4;
}

message Abort {
  uint32 rank = 1;
  sint32 code = 2;
  string reason = 3;
  string stack = 4;
}

message ProcessExit {
  uint32 rank = 1;
  optional sint32 code = 2;
  string signal = 3;
  bool finalized = 4;
  // Declared dead after silence, where nobody can wait for the process.
  bool lost = 5;
  // Declared dead since a newer incarnation of the same index has joined. The process itself is told, too.
  bool replaced = 6;
}

// Rank to launcher: no rail leads to that process. The answer is its end, or that of whoever asks, for everybody.
message Unreachable {
  uint32 rank = 1;
  // Since when.
  uint32 for_ms = 2;
  // It would be given up now, if there were nobody to ask.
  bool final = 3;
}

message RailEvent {
  bytes json = 1;
}

message Finalized {
}

// From a process that stands by, or did, to the launcher, and on to everybody else: whether it waits to be called in. One that waits counts as
// arrived at every barrier.
message StandbyState {
  uint32 rank = 1;
  bool waiting = 2;
  // Where it does not wait: its rank in the communicator that it was called into.
  uint32 place = 3;
}

// From a member of a communicator to the launcher, and on to the process that it calls in: what it says in its direct message, too.
message StandbyCall {
  // Who is called; on the way to it, who calls.
  uint32 rank = 1;
  bytes call = 2;
}

// A process has joined the job after its start: it has this number, stands by, and published this entry for the modex. Once every process that
// lives has taken this message, StandbyState says that the new one waits to be called in.
message ProcessJoined {
  uint32 number = 1;
  uint64 incarnation = 2;
  bytes json = 3;
}

// Launcher to ranks: no process will be started any more in place of those that die.
message StandbysEnd {
}

// Rank to launcher: find out who waits for whom, and print it.
message WaitsAsk {
  string reason = 1;
}

// Launcher to rank: what are you waiting for?
message WaitsRequest {
  uint32 id = 1;
}

// The answer. The JSON is that of Runtime.waits().
message WaitsReport {
  uint32 id = 1;
  bytes json = 2;
}

// Rank to launcher, every mpi_telemetry_ms where that is set: the state of this rank, and the rails that changed since the last report.
// Every count is a total, so that a report which was never sent is missing nowhere.
message Telemetry {
  // Microseconds since this rank began to report, by its own clock.
  uint64 at_us = 1;
  // How long it was polling the rails, and how often (Runtime.counters()).
  uint64 alive_ms = 2;
  uint64 turns = 3;
  uint64 retained_bytes = 4;
  // It obeys rail_fault.
  bool takes_faults = 5;
  repeated TelemetryRail rails = 6;
  repeated TelemetryMove moves = 7;
  // Moves that found no room in a report, in all.
  uint64 moves_dropped = 8;
  // Counters of the PML, by name; those that changed.
  map<string, uint64> counters = 9;
}

message TelemetryRail {
  uint32 peer = 1;
  uint32 rail = 2;
  string state = 3;
  uint32 epoch = 4;
  // Why it was last lost or not connected.
  string reason = 5;
  uint64 outstanding_bytes = 6;
  uint64 window_bytes = 7;
  uint64 measured_bytes_per_second = 8;
  // In the order of RAIL_COUNTERS in src/launch/oob/telemetry.ts.
  repeated uint64 counters = 9;
  // Only in the first report of this rail.
  TelemetryRailName name = 10;
}

message TelemetryRailName {
  string key = 1;
  string transport = 2;
  bool standby = 3;
  double bandwidth_bytes_per_second = 4;
  double latency_us = 5;
}

// A rail of this rank went from one state to another.
message TelemetryMove {
  uint32 peer = 1;
  uint32 rail = 2;
  string from = 3;
  string to = 4;
  string reason = 5;
  uint64 at_us = 6;
}

// Launcher to rank: break a rail in the fault interposer (btl_fault), or restore it.
message RailFault {
  // pull, blackhole or restore
  string action = 1;
  uint32 peer = 2;
  uint32 rail = 3;
}
`;
