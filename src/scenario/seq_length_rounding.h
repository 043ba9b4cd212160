/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sequence lengths that schedules can split: multiples of the ranks, of twice the ranks, and so on.
 */
#pragma once

#include "scenario/setup.h"

/* Rounds the sequence to the nearest length that every schedule accepts, if the scenario asks for
 * it (round_seq_length); LH_ERROR_NO if there is none nearby. Schedules that reject the case for
 * another reason are ignored. */
bool lh_seq_length_round(LhSetup *setup, GError **error);

/* LH_ERROR_NO with the nearest legal lengths if every schedule rejects the case because of its
 * length. */
bool lh_seq_length_check(const LhSetup *setup, GError **error);
