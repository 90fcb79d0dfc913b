/* The limit: the same chains by hand, for one core. SGHMC and SGLD by Euler–Maruyama with independent minibatches.

   Random numbers: xoshiro128+ (Blackman and Vigna), LANES streams side by side so that gcc vectorises them, and
   Box–Muller. Chains are taken in blocks that stay in the first-level cache for all of their steps. */

#include <math.h>
#include <stdint.h>
#include <string.h>

#define LANES 64
#define WIDEST 1024

typedef struct {
    uint32_t s[4][LANES];
} stream;

static uint64_t splitmix(uint64_t *x)
{
    uint64_t z = (*x += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

static void start(stream *g, uint64_t seed)
{
    for (int w = 0; w < 4; w++)
        for (int k = 0; k < LANES; k++)
            g->s[w][k] = (uint32_t)splitmix(&seed);
}

static inline void next(stream *restrict g, uint32_t *restrict out)
{
    for (int k = 0; k < LANES; k++) {
        uint32_t a = g->s[0][k], b = g->s[1][k], c = g->s[2][k], d = g->s[3][k];
        out[k] = a + d;
        c ^= a;
        d ^= b;
        g->s[1][k] = b ^ c;
        g->s[0][k] = a ^ d;
        g->s[2][k] = c ^ (b << 9);
        g->s[3][k] = (d << 11) | (d >> 21);
    }
}

/* LANES pairs of standard normal numbers. */
static inline void normals(stream *g, float *restrict x, float *restrict y)
{
    uint32_t u[LANES], v[LANES];
    next(g, u);
    next(g, v);
    for (int k = 0; k < LANES; k++) {
        float radius = sqrtf(-2.0f * logf(((float)(int32_t)(u[k] >> 8) + 0.5f) * 0x1p-24f));
        float angle = (float)(int32_t)(v[k] >> 8) * (6.28318530718f * 0x1p-24f);
        x[k] = radius * cosf(angle);
        y[k] = radius * cosf(angle - 1.57079632679f); /* gcc has no vector sincosf */
    }
}

/* V(θ) = Σ ½‖θ − c_i‖² in the plane, one datum per step; chains is a multiple of LANES. */
void gaussian(const float *centres, int n, int chains, int steps, float h, float gamma, int momentum, uint64_t seed,
              float *positions)
{
    float noise = sqrtf(momentum ? 2.0f * gamma * h : 2.0f * h);
    for (int block = 0; block < chains; block += LANES) {
        stream g;
        float x[LANES] = {0}, y[LANES] = {0}, px[LANES] = {0}, py[LANES] = {0}, a[LANES], b[LANES];
        uint32_t u[LANES];
        start(&g, seed + block);
        if (momentum)
            normals(&g, px, py);
        for (int t = 0; t < steps; t++) {
            next(&g, u);
            normals(&g, a, b);
            for (int k = 0; k < LANES; k++) {
                uint32_t i = (uint32_t)(((uint64_t)u[k] * (uint32_t)n) >> 32);
                float fx = (float)n * (centres[2 * i] - x[k]), fy = (float)n * (centres[2 * i + 1] - y[k]);
                if (momentum) {
                    x[k] += h * px[k];
                    y[k] += h * py[k];
                    px[k] += h * (fx - gamma * px[k]) + noise * a[k];
                    py[k] += h * (fy - gamma * py[k]) + noise * b[k];
                } else {
                    x[k] += h * fx + noise * a[k];
                    y[k] += h * fy + noise * b[k];
                }
            }
        }
        for (int k = 0; k < LANES; k++) {
            positions[2 * (block + k)] = x[k];
            positions[2 * (block + k) + 1] = y[k];
        }
    }
}

/* Logistic regression on rows z = (2y − 1) x, prior N(0, I/precision). */
void logistic(const float *rows, int n, int d, int batch, int chains, int steps, float h, float gamma,
              float precision, int momentum, uint64_t seed, float *positions)
{
    float noise = sqrtf(momentum ? 2.0f * gamma * h : 2.0f * h), scale = (float)n / (float)batch;
    for (int chain = 0; chain < chains; chain++) {
        stream g;
        float *theta = positions + (long)chain * d, r[WIDEST], force[WIDEST], xi[WIDEST + 2 * LANES];
        uint32_t u[WIDEST + LANES];
        start(&g, seed + chain);
        for (int k = 0; k < d; k += 2 * LANES)
            normals(&g, xi + k, xi + k + LANES);
        memcpy(r, xi, sizeof(float) * d);
        for (int t = 0; t < steps; t++) {
            for (int k = 0; k < batch; k += LANES)
                next(&g, u + k);
            for (int k = 0; k < batch; k++) {
                u[k] = (uint32_t)(((uint64_t)u[k] * (uint32_t)n) >> 32);
                const char *row = (const char *)(rows + (long)u[k] * d);
                for (int line = 0; line < 4 * d; line += 64)
                    __builtin_prefetch(row + line);
            }
            for (int k = 0; k < d; k += 2 * LANES)
                normals(&g, xi + k, xi + k + LANES);
            for (int j = 0; j < d; j++)
                force[j] = -precision * theta[j];
            for (int k = 0; k < batch; k++) {
                const float *row = rows + (long)u[k] * d;
                float dot = 0.0f;
                for (int j = 0; j < d; j++)
                    dot += row[j] * theta[j];
                float slope = scale / (1.0f + expf(dot));
                for (int j = 0; j < d; j++)
                    force[j] += slope * row[j];
            }
            for (int j = 0; j < d; j++) {
                if (momentum) {
                    theta[j] += h * r[j];
                    r[j] += h * (force[j] - gamma * r[j]) + noise * xi[j];
                } else {
                    theta[j] += h * force[j] + noise * xi[j];
                }
            }
        }
    }
}
