/* SPDX-License-Identifier: Apache-2.0 */
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
