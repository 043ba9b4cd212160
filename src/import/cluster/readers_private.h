/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Helpers of the readers in tool_output.h: lines and words of a text, and adding of values.
 */
#pragma once

#include "base/text_reader.h"
#include "import/cluster/tool_output.h"

#define LH_TOOL_BYTES_MAX (16U << 20) /* of a file */
#define LH_TOOL_LINES_MAX 1000000
#define LH_TOOL_LINE_BYTES_MAX 65536
#define LH_TOOL_WORDS_MAX 4096 /* of a line */
#define LH_TOOL_NAME_BYTES_MAX 255
#define LH_TOOL_GPUS_MAX 256 /* per node: GPUs, or NICs, that a tool lists */

typedef struct {
    const char *at;
    gsize length;
} LhToolWord;

typedef struct {
    LhTextReader text;
    LhToolCluster *cluster;
    const char *tool; /* "nvidia-smi topo -m" */
    GArray *words;    /* of LhToolWord: of the current line */
} LhToolReader;

/* A format: a test for a line that only this format has, and a reader, which starts at the
 * beginning of the file. */
typedef struct {
    const char *name;
    bool (*has_line)(const LhToolReader *r);
    bool (*read)(LhToolReader *r);
} LhToolFormat;

extern const LhToolFormat lh_tool_smi, lh_tool_nccl_xml, lh_tool_nccl_tests, lh_tool_perftest,
    lh_tool_slurm;

/* Output of other vendors' tools, which is rejected. */
extern const LhToolFormat lh_tool_foreign;

/* Checks the reader's whole text and places it before the first line. False with the error set if
 * the text is too long or not UTF-8. */
bool lh_tool_begin(LhToolReader *r);

/* Places the reader before the first line, at @text. */
void lh_tool_rewind(LhToolReader *r, const char *text);

/* Skips what a launcher or log put at the beginning of a line: rank, host or time. Returns @begin
 * if there is no such prefix. */
const char *lh_tool_after_prefix(const char *begin, const char *end);

/* Moves to the next line and splits it into words; *@more is false at the end. False with the error
 * set if the line is too long or has too many words. */
bool lh_tool_next(LhToolReader *r, bool *more);

/* Word @index; empty if there are fewer. Words do not end with a NUL. */
LhToolWord lh_tool_word(const LhToolReader *r, guint index);
bool lh_tool_is(LhToolWord word, const char *text);
bool lh_tool_begins(LhToolWord word, const char *text);
bool lh_tool_same(LhToolWord a, LhToolWord b);

/* Whether the line contains @text. */
bool lh_tool_line_has(const LhToolReader *r, const char *text);

/* Copies a word for messages: at most LH_TOOL_NAME_BYTES_MAX bytes, valid UTF-8. Caller frees. */
char *lh_tool_text(LhToolWord word);

/* Whether the whole word is an integer ("12"), an integer after @prefix ("GPU12"), or a decimal
 * number ("1.2e+06"). Sets @value only then. */
bool lh_tool_uint(LhToolWord word, uint64_t *value);
bool lh_tool_numbered(LhToolWord word, const char *prefix, uint64_t *value);
bool lh_tool_double(LhToolWord word, double *value);

typedef struct {
    double value; /* nocheck:unit: of its kind */
    LhProvenance provenance;
    uint32_t weight;
    uint64_t ranks;
} LhToolValue;

/* "the bandwidth of a NIC". */
const char *lh_tool_kind_name(LhToolKind kind);

/* Adds a value found in line @line. False with the error set if it contradicts another file. */
bool lh_tool_add(LhToolReader *r, LhToolKind kind, guint line, LhToolValue value);

/* "ib_write_bw (nic.txt)": tool and base name of the file. Caller frees. */
char *lh_tool_source(const LhToolReader *r);

/* "nic.txt:12". Caller frees. */
char *lh_tool_place(const LhToolReader *r, guint line);
