/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links as a profile measured them, laid over those of a topology file. A profile measures the rate
 * that messages reach, a file gives the rate of the wires; so the measured rate is compared with
 * the rate that the topology predicts for the same message.
 */
#pragma once

#include "scenario/profile.h"

/*
 * For each class of links in the profile, scales the rates of the topology's links by measured over
 * predicted rate of the profile's message; takes latency and SMs from the profile. The topology
 * then predicts the measured rate. A profile that agrees with the topology changes no rate, and
 * collectives measured on the file's links are scaled along.
 */
void lh_profile_apply_links(const LhProfile *profile, LhTopology *topology);

/* Sentences (char *) on classes whose measured rate is outside 0.9 to 1.1 of the predicted one.
 * Caller frees. */
GPtrArray *lh_profile_link_notes(const LhTopology *topology);
