/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scripts: the messages of one member of a collective and their dependences, without times, for
 * exporting programs to other simulators.
 */
#pragma once

#include "sim/network/collectives/collective.h"

#define LH_SCRIPT_NONE UINT32_MAX

typedef enum {
    LH_SCRIPT_SEND,
    LH_SCRIPT_RECEIVE,
    LH_SCRIPT_JOIN, /* no message: waits for all before it, and all after it wait for it */
} LhScriptKind;

/* The k-th message to a peer in one member's script matches the k-th from that member in the
 * peer's. */
typedef struct {
    LhScriptKind kind;
    uint32_t peer; /* rank */
    uint64_t bytes;
    const uint32_t *after; /* indices of earlier messages of the script */
    uint32_t after_count;
} LhScriptMessage;

struct _LhScript {
    const LhCollective *collective; /* borrowed; its members and their state are not used */
    void (*tell)(void *data, const LhScriptMessage *message);
    void *data;
    uint32_t count; /* messages so far */
};

/* For algorithms: adds a message to or from the member @peer, after those of @after that are not
 * LH_SCRIPT_NONE. Returns its index. */
uint32_t lh_script_add(LhScript *script, LhScriptKind kind, uint32_t peer, uint64_t bytes,
                       const uint32_t *after, uint32_t after_count);
void lh_script_join(LhScript *script);
