/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of the stand-in.
 *
 *     runtime.c   streams as queues, ops, waiting hosts
 *     events.c    events
 *     races.c     memory and races on it, by 4 bytes
 *     clock.c     virtual time
 *     kernels.c   kernels from fat binaries
 *     cuda.c      the cuda* functions
 *
 * One lock guards everything; functions here are called with it held, unless stated otherwise.
 */
#pragma once

#include "standin.h"

#include <cuda_runtime_api.h>
#include <glib.h>

#define STANDIN_STREAMS_MAX 256

/* For each stream the number of its ops that are included, counted from its first. */
typedef struct {
    uint32_t at[STANDIN_STREAMS_MAX];
} StandinClock;

typedef struct CUstream_st StandinStream;
typedef struct CUevent_st StandinEvent;
typedef struct StandinOp StandinOp;

/*
 * Kinds of work on streams. Other files add kinds, whose ops begin with a StandinOp and are
 * allocated with g_new0. The first op of a stream is started; once ready, it may run at any time
 * that the seed chooses.
 */
typedef struct {
    const char *name; /* "kernel", "copy" */
    /* Called when the op is first on its stream: whether it starts now; repeated until it does.
     * NULL: it does. Messages of a communicator, for instance, start one after the other. */
    bool (*start)(StandinOp *op);
    /* Whether run() has anything to do; NULL: yes. Only for started ops. */
    bool (*ready)(StandinOp *op);
    /* Does the work available; true if that was all: the op is removed when its time is over. */
    bool (*run)(StandinOp *op);
    void (*end)(StandinOp *op); /* called when its time is over; NULL: nothing to do */
    /* Appends what it waits for; NULL: nothing. */
    void (*describe)(const StandinOp *op, GString *text);
    void (*clear)(StandinOp *op); /* NULL: nothing to free */
    StandinCallKind call;
} StandinKind;

struct StandinOp {
    const StandinKind *kind;
    StandinOp *next;
    StandinStream *stream;
    char *label;           /* owned */
    uint64_t order;        /* of the calls, over all streams */
    uint32_t index;        /* on its stream, from 1 */
    StandinClock clock;    /* ops complete before it starts */
    bool started, through; /* through: run() has done everything */
    double asked_s;        /* virtual time of the host's call; it starts no earlier */
    double begin_s, end_s; /* likewise; begin_s is set at the start, and end_s to the same */
    double work_s;         /* of a kernel: remaining time if alone */
    uint32_t part;         /* of its device; kernels of a part share its SMs */
};

struct CUstream_st {
    StandinStream *next;
    int device;
    uint32_t slot;   /* index in clocks */
    uint32_t number; /* counted since there was no stream: the same in every run */
    bool alive;
    int priority;
    StandinOp *first, *last;
    uint32_t issued;
    uint32_t kernels;  /* kernels among them */
    StandinClock done; /* its last complete op and everything before it */
};

/* A record of an event. A wait refers to the latest record at the time of its call. */
typedef struct {
    uint32_t holders;
    StandinStream *stream;
    bool passed;
    StandinClock clock; /* valid once it has passed */
    double time_s;
} StandinMoment;

struct CUevent_st {
    StandinEvent *next;
    StandinMoment *latest; /* NULL: never recorded */
    int device;
    bool timed, alive;
};

/* ---- runtime.c ---- */

void standin_lock(void);
void standin_unlock(void);
uint64_t standin_random(void);
extern StandinOptions standin_options;
extern StandinCounts standin_counted;
/* This thread's current device. */
extern __thread int standin_device;

/* Signals a change that may let other threads continue. */
void standin_moved(void);

/* The return value of a call with this outcome; remembered as the thread's last error. */
cudaError_t standin_result(cudaError_t code);

/* A kernel's first error is sticky, as in CUDA: every later call fails. */
extern cudaError_t standin_sticky;

void standin_finding(const char *format, ...) G_GNUC_PRINTF(1, 2);

/* Allocates an op for @stream, of @bytes bytes (its kind's struct). Takes ownership of @label. */
void *standin_op_new(const StandinKind *kind, StandinStream *stream, size_t bytes, char *label);
/* Appends an op to its stream; takes ownership. */
cudaError_t standin_enqueue(StandinOp *op);

StandinStream *standin_stream_new(unsigned flags, int priority);
extern StandinStream *standin_streams; /* of all devices */

void standin_join(StandinClock *to, const StandinClock *from);
/* Orders @op after everything before @other began, as both ends of a message do. */
void standin_join_start(StandinOp *op, const StandinOp *other);
/* Adds @clock to what this thread's host knows to be complete, and so to its later ops. */
void standin_host_knows(const StandinClock *clock);
/* What this thread's host knows. */
const StandinClock *standin_host_clock(void);

/* Executes one piece of work; false if there is none. */
bool standin_work(void);

/*
 * Makes the host wait until @until(@data), while work is executed or other threads act; false, with
 * a finding that names @what, if nothing changes for long.
 */
bool standin_host_waits(bool (*until)(void *data), void *data, const char *what);

/* This thread's host has queried @what: it is not complete; or it is. */
void standin_asked_in_vain(const void *what);
void standin_learned(void);

/* ---- events.c ---- */

void standin_events_start(void);
void standin_events_end(void);

/* ---- races.c ---- */

void standin_races_start(void);
void standin_races_end(void);

/* Allocates device memory, filled with poison. */
void *standin_memory_new(uint64_t bytes);
/* False if no block begins there. */
bool standin_memory_free(void *at);
bool standin_is_device_memory(const void *at);
/* The bytes from @at to the end of its block, and its device in @device (may be NULL); 0 if there
 * is no block. */
uint64_t standin_memory_room(const void *at, int *device);

/*
 * Records that @op reads or writes [at, at + bytes). Findings: accesses not ordered with another
 * op's, and memory outside any block. False: the memory does not exist and must not be touched.
 * Each turn of an op has its own number; accesses with equal numbers do not race.
 */
bool standin_touch(StandinOp *op, uint32_t turn, const void *at, uint64_t bytes, bool write);
uint32_t standin_turn(const StandinOp *op);

/* ---- clock.c ---- */

void standin_clock_start(void);
double standin_now(void);
/* Sets the kernel's duration and its part of the device, for a launch made by this thread now. */
void standin_clock_launch(StandinOp *op, const char *name, const uint32_t grid[3]);
double standin_message_s(uint64_t bytes);
double standin_collective_s(uint64_t bytes);
/* Host cost of the call. */
double standin_call_s(StandinCallKind call);
double standin_fill_s(uint64_t bytes);
bool standin_is_idle(void);
/* Whether the host's call has been reached by virtual time. */
bool standin_is_asked(const StandinOp *op);
bool standin_is_over(const StandinOp *op);
/* Advances to the next end of an op whose work is done; false if there is none. */
bool standin_clock_advance(void);

/* ---- kernels.c ---- */

void standin_kernels_start(void);
