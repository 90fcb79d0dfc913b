def predicted_sd_error(*, second, lean, fourth, noise_ratio, rule):
    if second <= 0:
        return 0.0
    rho = noise_ratio
    lost = max(0.0, 1 - lean / second)
    b = rho / (1 + rho) * fourth / second / 6 + 0.5 * rho * lost / (1 + rho * (1 - lost))
    return b * (0.5 if rule == "sequential" else 1.0)
