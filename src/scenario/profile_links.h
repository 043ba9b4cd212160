/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links as a profile measured them, laid over those of a topology's file. What was measured is what
 * messages reach, and a file says what wires let through: like is compared with like.
 */
#pragma once

#include "scenario/profile.h"

/*
 * Of each class that the profile has, the topology's links get the share more or less that the
 * profile's message reached beside what the topology says of such a message; latencies and SMs are
 * the profile's. Then the topology predicts what was measured, a profile of what it says already
 * changes no rate, and collectives that were measured on the file's links change along.
 */
void lh_profile_apply_links(const LhProfile *profile, LhTopology *topology);

/* What the profile found of a class beside what the file says, where that is not 0.9 to 1.1: of
 * char *, sentences. Caller frees. */
GPtrArray *lh_profile_link_notes(const LhTopology *topology);
