/*
 * Hashes of ops by all that the simulator looks at: equal ones of two layers take equally long, as
 * far as 64 bits tell.
 */
#pragma once

#include "program/program.h"

#include <string.h>

static inline uint64_t
lh_mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15) + 1;
    return hash ^ hash >> 29;
}

static inline uint64_t
lh_mix_bytes(uint64_t hash, const void *data, gsize bytes)
{
    const unsigned char *at = data;
    uint64_t word = 0;

    for (; bytes >= sizeof(word); bytes -= sizeof(word), at += sizeof(word)) {
        memcpy(&word, at, sizeof(word));
        hash = lh_mix(hash, word);
    }
    word = 0;
    memcpy(&word, at, bytes);
    return lh_mix(hash, word);
}

/* Of an op, but for what tells it from the same op of another layer. Hosts issue whole steps:
 * @first says whether it is the first op of one. */
uint64_t lh_op_hash(const LhProgram *program, const LhOp *op, const LhOpBuffer *buffer, bool first);
