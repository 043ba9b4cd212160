/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the fuzzers share. A fuzzer is one function, LLVMFuzzerTestOneInput: it hands bytes to a
 * reader and holds what comes back against the reader's contract. libFuzzer calls it with inputs
 * that it invents; replay.c calls it with those that are kept. A broken contract aborts.
 */
#pragma once

#include "sim/sim.h"

#include <glib.h>
#include <stddef.h>
#include <stdint.h>

/* What messages call the input. */
#define FUZZ_NAME "input.json"

/* Libraries call these by name. */
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/*
 * Exactly one of a result and an error. An error is of our domain and UTF-8 text. @prefix, if not
 * NULL, is what the message starts with.
 */
void fuzz_check(bool ok, const GError *error, const char *prefix);

/* A message of a reader of files: FUZZ_NAME and a line in front, LH_ERROR_INPUT. */
void fuzz_check_file(bool ok, const GError *error);

/* A small device and a small cluster of two nodes of two GPUs for it; callers free. */
LhDevice *fuzz_device(void);
LhTopology *fuzz_topology(void);

/*
 * Plays @program on @device and as many nodes of @topology as its ranks need, for at most a million
 * events. The result keeps what it promises: the parts of each rank's time add up. NULL, with
 * @error, if it was refused or did not end. Caller frees.
 */
LhSimResult *fuzz_play(const LhProgram *program, const LhTopology *topology, const LhDevice *device,
                       LhNetworkModel model, LhCostMode cost, GError **error);

/* Plays a short ring attention on 1 to 4 ranks; for devices and topologies that were just read. */
void fuzz_play_ring(const LhTopology *topology, const LhDevice *device);
