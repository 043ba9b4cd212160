/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for the CUDA runtime, for tests without a GPU: linked in its place. Work is put off
 * and then done in an order drawn from a seed; kernels are run from the PTX in the program's own
 * objects. What a GPU would let pass is a finding: accesses that nothing orders, memory that was
 * given back, events that were never recorded, leaks. It proves no times and knows no hardware;
 * docs/internals/kernels.md says what else it cannot show.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint64_t seed;
    uint32_t devices;
    uint32_t queues; /* hardware queues of a device, which its streams share; 0: one for each */
    uint32_t eager;  /* percent: how often something is done as soon as it is asked for */
    uint64_t memory_bytes; /* of each device; 0: no limit */
    uint32_t shared_bytes; /* that a block may have, at most; 0: the 227 KiB of sm_90 and sm_100 */
    /* What the manual leaves open within a kernel falls out alike in all launches, so that runs on
     * other streams have the same bits; else launches differ. */
    bool alike;
    int driver; /* newest version of CUDA that it knows, 1000 major + 10 minor; 0: the runtime's
                   own; -1: there is no driver */
} StandinOptions;

/* What a call costs the host that makes it. */
typedef enum {
    STANDIN_LAUNCH, /* a kernel, a copy, a fill */
    STANDIN_RECORD, /* of an event */
    STANDIN_WAIT,   /* of a stream for an event */
    STANDIN_GROUP,  /* of messages or collectives */
    STANDIN_CALLS
} StandinCallKind;

/* What the virtual clock counts. Copies take no time, and no other calls of a host than those
 * above: time passes when all hosts wait, or are ahead of it. */
typedef struct {
    /* Seconds that a kernel takes when it is alone on its device; NULL: no time. */
    double (*kernel)(const char *name, const uint32_t grid[3]);
    /* A message of NCCL: latency, and bytes per second, 0 for no time. */
    double message_s, message_bytes_per_s;
    /* A collective of NCCL's own, by the bytes of a call; 0: as a message. */
    double collective_s, collective_bytes_per_s;
    double call_s[STANDIN_CALLS];
    double fill_bytes_per_s; /* 0: no time */
    /* Share of a device that a group holds from its start to its end, and kernels lack. */
    double held;
    /* Nothing is computed, nothing large is moved, and memory is not watched: only time passes. */
    bool idle;
} StandinTimes;

typedef struct {
    uint64_t kernels, copies, fills, messages, accesses; /* checked: 4 bytes each */
    uint64_t host_waits;
} StandinCounts;

/* Forgets everything and begins again. */
void standin_start(const StandinOptions *options);
void standin_times(const StandinTimes *times);
/* What this thread's next launch takes, whatever StandinTimes says of it, and the part of the
 * device that it is for: kernels share the SMs of a part, and take none from others. */
void standin_next_launch(double seconds, uint32_t part);

/* Does what is left to do; what was not given back is a finding. */
void standin_end(void);

/* One a line, "" if there are none; each kind of finding counts once a pair of ops. Borrowed until
 * the next start. */
const char *standin_findings(void);
StandinCounts standin_counts(void);

/* What every stream waits for if nothing can ever move again; NULL: nothing waits. Borrowed. */
const char *standin_stuck(void);
