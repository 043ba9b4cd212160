/* SPDX-License-Identifier: Apache-2.0 */
/* Frames as sent over a connection. */
#pragma once

#include "runtime/process/frames.h"

/* Returns the header and content of a frame; caller unrefs. */
static inline GByteArray *
frame_of(LhControlFrameKind kind, GBytes *content)
{
    const guint bytes = (guint)g_bytes_get_size(content);
    g_autoptr(GBytes) header = lh_control_frame_header(kind, bytes);
    GByteArray *frame = g_byte_array_new();

    g_byte_array_append(frame, g_bytes_get_data(header, NULL), LH_FRAME_HEADER_BYTES);
    g_byte_array_append(frame, g_bytes_get_data(content, NULL), bytes);
    return frame;
}
