/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lengths of sequences that schedules can cut: multiples of the ranks, of twice the ranks, and so
 * on.
 */
#pragma once

#include "scenario/setup.h"

/* Rounds the sequence to the nearest length that every schedule takes, if the scenario asks for it
 * (round_seq_length); LH_ERROR_NO if there is none near it. Schedules that refuse for another
 * reason do not count. */
bool lh_seq_length_round(LhSetup *setup, GError **error);

/* LH_ERROR_NO, naming the nearest lengths, if every schedule refuses and it is the length that
 * keeps them from running. */
bool lh_seq_length_check(const LhSetup *setup, GError **error);
