/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The backward pass in programs of assignments.
 */
#pragma once

#include "synth/writer.h"

/* Declares its slots; a layout has at most @q_parts and @kv_parts. */
void lh_synth_declare_backward(LhSynthEmission *e, uint32_t q_parts, uint32_t kv_parts);

/* lh_synth_begin_backward precedes the forward pass, which leaves statistics for the backward
 * pass; lh_synth_write_backward writes the pass itself. */
void lh_synth_begin_backward(LhSynthWriter *w);
void lh_synth_write_backward(LhSynthWriter *w);

/* The outputs [output, output + count) were computed by @kernel from part @part of @slot on.
 * Computes again, into the rank's layout, the statistics of those that its own GPU attends to,
 * because no kernel copies statistics. */
void lh_synth_keep_statistics(LhSynthWriter *w, LhKernelId kernel, uint16_t slot, uint32_t part,
                              uint32_t output, uint32_t count);
