/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the readers of tool_output.h share: lines and words of a text, and how they say what they
 * found.
 */
#pragma once

#include "base/text_reader.h"
#include "import/cluster/tool_output.h"

#define LH_TOOL_BYTES_MAX (16U << 20) /* of a file */
#define LH_TOOL_LINES_MAX 1000000
#define LH_TOOL_LINE_BYTES_MAX 65536
#define LH_TOOL_WORDS_MAX 4096 /* of a line */
#define LH_TOOL_NAME_BYTES_MAX 255
#define LH_TOOL_GPUS_MAX 256 /* of a node: GPUs, or NICs, that a tool lists */

typedef struct {
    const char *at;
    gsize length;
} LhToolWord;

typedef struct {
    LhTextReader text;
    LhToolCluster *cluster;
    const char *tool; /* "nvidia-smi topo -m" */
    GArray *words;    /* of LhToolWord: of the line that is being read */
} LhToolReader;

/* A format: whether a line is one that only it has, and how it is read, from the file's beginning.
 */
typedef struct {
    const char *name;
    bool (*has_line)(const LhToolReader *r);
    bool (*read)(LhToolReader *r);
} LhToolFormat;

extern const LhToolFormat lh_tool_smi, lh_tool_nccl_xml, lh_tool_nccl_tests, lh_tool_perftest,
    lh_tool_slurm;

/* What tools of other makers' GPUs print, which is refused. */
extern const LhToolFormat lh_tool_foreign;

/* Puts a reader, whose text is all of a file, before its first line; false with the error set if it
 * is too long, or no text in UTF-8. */
bool lh_tool_begin(LhToolReader *r);

/* Puts it before the first line, at @text. */
void lh_tool_rewind(LhToolReader *r, const char *text);

/* Where the line from @begin to @end goes on behind what a launcher or a log put before it: the
 * rank or the host that printed it, or the time. @begin if there is nothing of the kind. */
const char *lh_tool_after_prefix(const char *begin, const char *end);

/* Moves to the next line and cuts it into words, *@more false at the end. False with the error set
 * if the line is too long, has too many words, or is no text. */
bool lh_tool_next(LhToolReader *r, bool *more);

/* The word of this number; empty, behind the line, if there are fewer. Texts do not end with a NUL.
 */
LhToolWord lh_tool_word(const LhToolReader *r, guint index);
bool lh_tool_is(LhToolWord word, const char *text);
bool lh_tool_begins(LhToolWord word, const char *text);
bool lh_tool_same(LhToolWord a, LhToolWord b);

/* Whether the line has this text somewhere. */
bool lh_tool_line_has(const LhToolReader *r, const char *text);

/* A copy for messages: at most LH_TOOL_NAME_BYTES_MAX bytes, valid UTF-8. Caller frees. */
char *lh_tool_text(LhToolWord word);

/* Whether the word is a whole number ("12"), a number after @prefix ("GPU12"), or a decimal one
 * ("1.2e+06"), and nothing else; @value is left alone if not. */
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

/* Adds what was found in line @line. False with the error set if another file says otherwise. */
bool lh_tool_add(LhToolReader *r, LhToolKind kind, guint line, LhToolValue value);

/* "ib_write_bw (nic.txt)": the reader's tool and the name of its file. Caller frees. */
char *lh_tool_source(const LhToolReader *r);

/* "nic.txt:12". Caller frees. */
char *lh_tool_place(const LhToolReader *r, guint line);
