/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for the CUDA runtime, linked in its place for tests without a GPU. Work is deferred
 * and executed in an order drawn from a seed; kernels run from the PTX in the program's own
 * objects. Errors that a GPU would not notice are findings: unordered accesses, use of freed
 * memory, waits for events never recorded, leaks. It proves nothing about times and models no
 * hardware; docs/internals/kernels.md lists what else it cannot show.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint64_t seed;
    uint32_t devices;
    uint32_t queues; /* hardware queues per device, shared by its streams; 0: one per stream */
    uint32_t eager;  /* percent of calls executed at once */
    uint64_t memory_bytes; /* per device; 0: no limit */
    uint32_t shared_bytes; /* maximum per block; 0: the 227 KiB of sm_90 and sm_100 */
    /* What the manual leaves open within a kernel is drawn equally in all launches, so that runs on
     * other streams give identical bits; otherwise launches differ. */
    bool alike;
    int driver; /* newest CUDA version it supports, 1000 major + 10 minor; 0: the runtime's own; -1:
                   there is no driver */
} StandinOptions;

/* Kinds of calls with a host cost. */
typedef enum {
    STANDIN_LAUNCH, /* a kernel, a copy, a fill */
    STANDIN_RECORD, /* of an event */
    STANDIN_WAIT,   /* of a stream on an event */
    STANDIN_GROUP,  /* of messages or collectives */
    STANDIN_CALLS
} StandinCallKind;

/* Durations on the virtual clock. Copies and all other host calls take no time. Time advances when
 * all hosts wait, or are ahead of it. */
typedef struct {
    /* Seconds of a kernel alone on its device; NULL: no time. */
    double (*kernel)(const char *name, const uint32_t grid[3]);
    /* A message of NCCL: latency, and bytes per second, 0 for no time. */
    double message_s, message_bytes_per_s;
    /* A collective of NCCL's own, by the bytes of a call; 0: as a message. */
    double collective_s, collective_bytes_per_s;
    double call_s[STANDIN_CALLS];
    double fill_bytes_per_s; /* 0: no time */
    /* Share of a device's SMs held by a communication group while it runs. */
    double held;
    /* Nothing is computed, nothing large is moved, and memory is not watched: only time
     * advances. */
    bool idle;
} StandinTimes;

typedef struct {
    uint64_t kernels, copies, fills, messages, accesses; /* checked: 4 bytes each */
    uint64_t host_waits;
} StandinCounts;

/* Resets everything. */
void standin_start(const StandinOptions *options);
void standin_times(const StandinTimes *times);
/* Sets the duration of this thread's next launch, overriding StandinTimes, and its part of the
 * device: kernels share the SMs of their part only. */
void standin_next_launch(double seconds, uint32_t part);

/* Executes all remaining work; leaks are findings. */
void standin_end(void);

/* One finding per line, "" if there are none; each kind is reported once per pair of ops. Borrowed
 * until the next start. */
const char *standin_findings(void);
StandinCounts standin_counts(void);

/* In a deadlock, what every stream waits for; NULL if nothing waits. Borrowed. */
const char *standin_stuck(void);
