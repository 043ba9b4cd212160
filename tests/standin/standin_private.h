/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the stand-in share.
 *
 *     runtime.c   streams as queues, ops, hosts that wait
 *     events.c    points of streams
 *     races.c     memory, and who touched which 4 bytes
 *     clock.c     virtual time
 *     kernels.c   kernels from fat binaries
 *     cuda.c      the cuda* functions
 *
 * One lock guards everything; functions here are called with it held, unless they say otherwise.
 */
#pragma once

#include "standin.h"

#include <cuda_runtime_api.h>
#include <glib.h>

#define STANDIN_STREAMS_MAX 256

/* Ops of each stream that came before, as a number of its first ones. */
typedef struct {
    uint32_t at[STANDIN_STREAMS_MAX];
} StandinClock;

typedef struct CUstream_st StandinStream;
typedef struct CUevent_st StandinEvent;
typedef struct StandinOp StandinOp;

/*
 * What is done on streams. Other files have kinds of their own, whose ops begin with a StandinOp
 * and are allocated with g_new0. The first op of a stream is started; when it is ready, it may be
 * run at any time that the seed chooses.
 */
typedef struct {
    const char *name; /* "kernel", "copy" */
    /* Its stream has got there: whether it starts now; asked again until it does. NULL: it does.
     * Messages of a communicator, say, start one after the other. */
    bool (*start)(StandinOp *op);
    /* Whether run() has anything to do; NULL: yes. Only for ops that have started. */
    bool (*ready)(StandinOp *op);
    /* Does what there is to do; true: that was all, and the op goes when its time is over. */
    bool (*run)(StandinOp *op);
    void (*end)(StandinOp *op); /* its time is over; NULL: nothing to do */
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
    uint64_t order;        /* in which it was asked for, over all streams */
    uint32_t index;        /* on its stream, from 1 */
    StandinClock clock;    /* what comes before it: complete when it starts */
    bool started, through; /* run() has done all that there was */
    double asked_s;        /* virtual: when its host asks for it; it starts no earlier */
    double begin_s, end_s; /* likewise; begin_s is set when it starts, and end_s to the same */
    double work_s;         /* of a kernel: that it still takes when it is alone */
    uint32_t part;         /* of its device, whose SMs a kernel shares */
};

struct CUstream_st {
    StandinStream *next;
    int device;
    uint32_t slot;   /* in clocks */
    uint32_t number; /* of those since there was none: the same in every run */
    bool alive;
    int priority;
    StandinOp *first, *last;
    uint32_t issued;
    uint32_t kernels;  /* of them */
    StandinClock done; /* its last op that is done, and what came before that */
};

/* A record of an event. Who waits, waits for the one that was the latest when he began to. */
typedef struct {
    uint32_t holders;
    StandinStream *stream;
    bool passed;
    StandinClock clock; /* from here on of what has passed */
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
/* The device that this thread uses. */
extern __thread int standin_device;

/* Something has happened, for which another thread may be able to go on. */
void standin_moved(void);

/* What a call returns, given what became of it; remembered as the thread's last error. */
cudaError_t standin_result(cudaError_t code);

/* The first error of a kernel stays, as in CUDA, and everything after it fails. */
extern cudaError_t standin_sticky;

void standin_finding(const char *format, ...) G_GNUC_PRINTF(1, 2);

/* An op for @stream; @bytes are those of its kind's struct. Label: taken over. */
void *standin_op_new(const StandinKind *kind, StandinStream *stream, size_t bytes, char *label);
/* Puts an op behind its stream's others; it is taken over. */
cudaError_t standin_enqueue(StandinOp *op);

StandinStream *standin_stream_new(unsigned flags, int priority);
extern StandinStream *standin_streams; /* of all devices */

void standin_join(StandinClock *to, const StandinClock *from);
/* @op comes after what came before @other began, as both ends of a message do. */
void standin_join_start(StandinOp *op, const StandinOp *other);
/* This thread's host knows that what @clock counts is done, and so does what it asks for later. */
void standin_host_knows(const StandinClock *clock);
/* What this thread's host knows. */
const StandinClock *standin_host_clock(void);

/* Does one thing that can be done; false: there is none. */
bool standin_work(void);

/*
 * Has the host wait until @until(@data), while work is done or other threads do something; false,
 * and a finding with @what, if nothing has moved for long.
 */
bool standin_host_waits(bool (*until)(void *data), void *data, const char *what);

/* This thread's host has asked whether @what is done, and it is not; or it is. */
void standin_asked_in_vain(const void *what);
void standin_learned(void);

/* ---- events.c ---- */

void standin_events_start(void);
void standin_events_end(void);

/* ---- races.c ---- */

void standin_races_start(void);
void standin_races_end(void);

/* Device memory; what it holds is poison. */
void *standin_memory_new(uint64_t bytes);
/* False: there is none that begins there. */
bool standin_memory_free(void *at);
bool standin_is_device_memory(const void *at);
/* The bytes of the block from @at on, and its device in @device (may be NULL); 0: nobody's. */
uint64_t standin_memory_room(const void *at, int *device);

/*
 * @op reads or writes [at, at + bytes). Findings: what no other op's access is ordered with, what
 * is nobody's. False: the memory is not there, and must not be touched. Each turn of an op has a
 * number of its own; accesses with the same one are not held against each other.
 */
bool standin_touch(StandinOp *op, uint32_t turn, const void *at, uint64_t bytes, bool write);
uint32_t standin_turn(const StandinOp *op);

/* ---- clock.c ---- */

void standin_clock_start(void);
double standin_now(void);
/* Gives the kernel its time and its part of the device, as of a launch that this thread makes now.
 */
void standin_clock_launch(StandinOp *op, const char *name, const uint32_t grid[3]);
double standin_message_s(uint64_t bytes);
double standin_collective_s(uint64_t bytes);
/* What the call takes its host. */
double standin_call_s(StandinCallKind call);
double standin_fill_s(uint64_t bytes);
bool standin_is_idle(void);
/* Whether the host has asked for the op by now. */
bool standin_is_asked(const StandinOp *op);
bool standin_is_over(const StandinOp *op);
/* Goes on to when the next op is over of those that are through; false: there is none. */
bool standin_clock_advance(void);

/* ---- kernels.c ---- */

void standin_kernels_start(void);
