/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mixes words into a 64-bit hash for hash tables: fast, not cryptographic.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t
lh_mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15) + 1;
    return hash ^ hash >> 29;
}

static inline uint64_t
lh_mix_bytes(uint64_t hash, const void *data, size_t bytes)
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
