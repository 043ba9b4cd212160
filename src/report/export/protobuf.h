/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of the protobuf wire format that traces need: fields that are numbers, or bytes preceded
 * by their length. All functions append to @out.
 */
#pragma once

#include <glib.h>
#include <stdint.h>

void lh_proto_varint(GString *out, uint64_t value);
void lh_proto_uint(GString *out, uint32_t field, uint64_t value);
void lh_proto_fixed64(GString *out, uint32_t field, uint64_t value);
void lh_proto_double(GString *out, uint32_t field, double value);
void lh_proto_text(GString *out, uint32_t field, const char *text);

/* Begins a message, which lh_proto_end() ends. Returns its start. */
gsize lh_proto_begin(GString *out, uint32_t field);
void lh_proto_end(GString *out, gsize begin);

/* Inserts the length of what was appended since @begin before it. */
void lh_proto_prefix(GString *out, gsize begin);
