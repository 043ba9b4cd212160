/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The channels of a program: one for the exchanges of each communicator number, and one for the
 * messages that each communicator's collectives consist of. Computed from the program alone, hence
 * the same on every rank and in every process.
 */
#pragma once

#include "program/program.h"

typedef struct _LhChannels LhChannels;

/* Walks the ops of all ranks. Caller frees. */
LhChannels *lh_channels_new(const LhProgram *program);
void lh_channels_free(LhChannels *channels);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhChannels, lh_channels_free)

uint32_t lh_channels_count(const LhChannels *channels);

/* The channel of the messages of an exchange or collective. */
uint32_t lh_channel_of(const LhChannels *channels, const LhOp *op);
