/*
 * What one member of a collective sends and receives, and which of that waits for which, without
 * time: for those who write programs out for other simulators.
 */
#pragma once

#include "sim/network/collectives/collective.h"

#define LH_SCRIPT_NONE UINT32_MAX

typedef enum {
    LH_SCRIPT_SEND,
    LH_SCRIPT_RECEIVE,
    LH_SCRIPT_JOIN, /* no message: it waits for all before it, and all behind wait for it */
} LhScriptKind;

/* Of the messages that go from one member to another, the k-th of the one's script is the k-th of
 * the other's. */
typedef struct {
    LhScriptKind kind;
    uint32_t peer; /* rank */
    uint64_t bytes;
    const uint32_t *after; /* of those before it, by how many came before them */
    uint32_t after_count;
} LhScriptMessage;

struct _LhScript {
    const LhCollective *collective; /* borrowed; its members and their state are not looked at */
    void (*tell)(void *data, const LhScriptMessage *message);
    void *data;
    uint32_t count; /* told so far */
};

/* For algorithms: a message to or from the member @peer, behind those of @after that are not
 * LH_SCRIPT_NONE. Returns its number. */
uint32_t lh_script_add(LhScript *script, LhScriptKind kind, uint32_t peer, uint64_t bytes,
                       const uint32_t *after, uint32_t after_count);
void lh_script_join(LhScript *script);

/* A rank's collective: what it is an op of. */
typedef struct {
    const LhProgram *program;
    uint32_t rank;
    const LhOp *op;
    const uint32_t *counts; /* of the op's buffer */
} LhScriptCall;

/* The number of the communicator of such an op, from 0 in the order in which they are asked for;
 * UINT32_MAX if its group lacks the rank or holds ranks that do not exist. */
uint32_t lh_collectives_number(LhCollectives *cs, const LhScriptCall *call);

/* Tells @tell the script of an op that has such a number. Times of a closed form are told as the
 * messages that it stands for. */
void lh_collectives_script(LhCollectives *cs, const LhScriptCall *call,
                           void (*tell)(void *data, const LhScriptMessage *message), void *data);
