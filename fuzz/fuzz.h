/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared declarations of the fuzzers. A fuzzer is one function, LLVMFuzzerTestOneInput: it passes
 * bytes to a reader and checks the result against the reader's contract. libFuzzer calls it with
 * generated inputs; replay.c calls it with those of the corpus. A violation aborts.
 */
#pragma once

#include "sim/sim.h"

#include <glib.h>
#include <stddef.h>
#include <stdint.h>

/* Name of the input in messages. */
#define FUZZ_NAME "input.json"

/* Called by libFuzzer by name. */
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/*
 * Checks that there is exactly one of a result and an error. An error is of our domain and UTF-8
 * text; it starts with @prefix unless that is NULL.
 */
void fuzz_check(bool ok, const GError *error, const char *prefix);

/* Likewise for a reader of files: the error is LH_ERROR_INPUT, prefixed by FUZZ_NAME and a line. */
void fuzz_check_file(bool ok, const GError *error);

/* A small device, and a small cluster of two nodes with two of its GPUs each. Caller frees. */
LhDevice *fuzz_device(void);
LhTopology *fuzz_topology(void);

/*
 * Simulates @program on @device and as many nodes of @topology as its ranks need, for at most a
 * million events, and checks that the parts of each rank's time add up. Returns NULL with @error if
 * it is refused or does not end. Caller frees.
 */
LhSimResult *fuzz_play(const LhProgram *program, const LhTopology *topology, const LhDevice *device,
                       LhNetworkModel model, LhCostMode cost, GError **error);

/* Simulates a short ring attention on 1 to 4 ranks, to test a device or topology that was read. */
void fuzz_play_ring(const LhTopology *topology, const LhDevice *device);
